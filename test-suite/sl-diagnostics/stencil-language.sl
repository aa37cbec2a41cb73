param N
grid G = [0..N-1]
field A : f32 on G
fn f -> A [1..N-2] = A[0]
steps 1
