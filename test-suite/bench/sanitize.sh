#!/bin/sh
# Runs compute-sanitizer's four tools over programs and strategies on a GPU machine.
#   sh test-suite/bench/sanitize.sh [STENCILC]
# One line a run; exit code 1 if any tool finds anything or a result differs from the oracle's.
stencilc=${1:-target/release/stencilc}
bad=0
for tool in memcheck racecheck initcheck synccheck; do
    for case in "heat2d --size N=67 --size M=131" "fdtd2d --size N=67 --size M=131" \
        "jacobi3d --size N=19 --size M=23 --size L=67" "jacobi1d3_f64 --size N=5003" \
        "jacobi2d_f64 --size N=67 --size M=131" "fdtd2d -D N=64 -D M=128"; do
        name=${case%% *}
        inputs=$(sed -nE 's/^(const )?field ([A-Za-z0-9_]+).*/--in \2=random:3/p' "test-suite/programs/$name.stencil")
        # The strategy stream takes programs of two dimensions, warp those of one.
        case $name in
            *2d*) stream="--strategy stream --pyramid-height 3" ;;
            *1d*) stream="--strategy warp --pyramid-height 3" ;;
            *) stream= ;;
        esac
        for schedule in "--strategy naive" "--strategy block --pyramid-height 3" ${stream:+"$stream"}; do
            # shellcheck disable=SC2086
            out=$(timeout 120 compute-sanitizer --error-exitcode 9 --tool "$tool" "$stencilc" run \
                "test-suite/programs/$name.stencil" --target cuda ${case#* } $inputs $schedule \
                --steps 7 --check --fp-contract=off 2>&1)
            if [ $? -eq 0 ]; then verdict=clean; else verdict=FAILED; bad=1; fi
            echo "$tool $case $schedule: $verdict, $(echo "$out" | grep SUMMARY | tail -1 | sed 's/=* //')"
            [ "$verdict" = clean ] || echo "$out" | grep -iE "error|hazard|differ" | head -5
        done
    done
done
exit $bad
