//! Memory: which accesses race, and which words count as written.

use super::*;

fn by(time: &Timeline, thread: u32) -> Accessor<'_> {
    Accessor { time, thread, site: 5, concurrent: false, peer: false }
}

fn peer(time: &Timeline, thread: u32) -> Accessor<'_> {
    Accessor { peer: true, ..by(time, thread) }
}

fn shared(words: usize) -> Memory {
    let mut memory = Memory::new(words * 4, 4, true);
    memory.forget();
    memory
}

#[test]
fn reads_of_unwritten_words_are_found() {
    let (memory, time) = (shared(2), Timeline::new(0));
    assert_eq!(memory.load(0, by(&time, 0)), Err(Conflict::Unwritten));
    assert_eq!(memory.store(1, 9, by(&time, 0)), Ok(()));
    assert_eq!(memory.load(1, by(&time, 0)), Ok(9));
}

#[test]
fn threads_race_within_an_interval_only() {
    let (memory, mut time) = (shared(1), Timeline::new(0));
    memory.store(0, 1, by(&time, 3)).unwrap();
    assert!(matches!(
        memory.load(0, by(&time, 4)),
        Err(Conflict::Race { other, write: true, .. }) if other.thread() == 3
    ));
    time.barrier();
    assert_eq!(memory.load(0, by(&time, 4)), Ok(1));
    assert_eq!(memory.load(0, by(&time, 6)), Ok(1));
    let race = memory.store(0, 2, by(&time, 4));
    assert!(
        matches!(
            race,
            Err(Conflict::Race { other, write: false, site: 5 }) if other.thread() == 6
        ),
        "{race:?}"
    );
    time.barrier();
    let (memory, _) = (shared(1), ());
    memory.store(0, 2, by(&time, 4)).unwrap();
    assert!(matches!(memory.store(0, 2, by(&time, 5)), Err(Conflict::Race { write: true, .. })));
}

#[test]
fn words_of_one_byte_are_written_apart() {
    let mut memory = Memory::new(3, 1, true);
    memory.forget();
    let time = Timeline::new(0);
    memory.store(0, 0x12, by(&time, 0)).unwrap();
    memory.store(1, 0x34, by(&time, 1)).unwrap();
    assert!(matches!(memory.store(1, 0, by(&time, 0)), Err(Conflict::Race { .. })));
    memory.fill(&[1, 2, 3]);
    let mut bytes = [0; 3];
    assert_eq!(memory.download(0, &mut bytes), Ok(()));
    assert_eq!((bytes, memory.word_mask(), memory.bytes()), ([1, 2, 3], 0xff, 3));
}

#[test]
fn words_of_two_bytes_are_written_apart() {
    let mut memory = Memory::new(6, 2, true);
    memory.forget();
    let time = Timeline::new(0);
    memory.store(0, 0x1234, by(&time, 0)).unwrap();
    memory.store(1, 0x5678, by(&time, 1)).unwrap();
    assert!(matches!(memory.store(1, 0, by(&time, 0)), Err(Conflict::Race { .. })));
    memory.fill(&[1, 2, 3, 4, 5, 6]);
    let mut bytes = [0; 6];
    assert_eq!(memory.download(0, &mut bytes), Ok(()));
    assert_eq!((bytes, memory.peek(2), memory.bytes()), ([1, 2, 3, 4, 5, 6], 0x0605, 6));
}

#[test]
fn blocks_race_whatever_their_barriers() {
    let (memory, a, mut b) = (shared(1), Timeline::new(0), Timeline::new(1));
    memory.store(0, 1, by(&a, 0)).unwrap();
    b.barrier();
    assert!(matches!(memory.load(0, by(&b, 0)), Err(Conflict::Race { .. })));
}

#[test]
fn a_write_after_reads_of_two_blocks_races_unless_flags_order_both() {
    let (mut a, mut b, mut c) = (Timeline::new(0), Timeline::new(1), Timeline::new(2));
    let memory = {
        let mut memory = Memory::new(4, 4, false);
        memory.begin(Usage::ReadWrite, false);
        memory
    };
    memory.load(0, peer(&a, 0)).unwrap();
    memory.load(0, peer(&b, 0)).unwrap();
    let flag = b.release(0);
    c.acquire(0, &flag);
    assert!(matches!(
        memory.store(0, 1, peer(&c, 0)),
        Err(Conflict::Race { other, write: false, .. }) if other.block() == 0
    ));
    let memory = {
        let mut memory = Memory::new(4, 4, false);
        memory.begin(Usage::ReadWrite, false);
        memory
    };
    memory.load(0, peer(&a, 0)).unwrap();
    memory.load(0, peer(&b, 0)).unwrap();
    for block in [&mut a, &mut b] {
        let flag = block.release(0);
        c.acquire(0, &flag);
    }
    assert_eq!(memory.store(0, 1, peer(&c, 0)), Ok(()));
}

#[test]
fn a_plain_store_to_a_flag_races_with_the_wait() {
    let mut memory = Memory::new(4, 4, false);
    memory.begin(Usage::ReadWrite, false);
    let (a, b) = (Timeline::new(0), Timeline::new(1));
    memory.store_atomic(0, 1, by(&a, 0)).unwrap();
    assert_eq!(memory.load_atomic(0, by(&b, 0)), Ok(1));
    memory.store(0, 2, by(&a, 0)).unwrap();
    assert!(matches!(memory.load_atomic(0, by(&b, 0)), Err(Conflict::Race { write: true, .. })));
}

#[test]
fn outputs_stay_poisoned_where_nobody_wrote() {
    let mut memory = Memory::new(8, 4, false);
    memory.begin(Usage::Write, true);
    let time = Timeline::new(0);
    memory.store(0, 1, by(&time, 0)).unwrap();
    memory.end();
    assert_eq!(memory.download(0, &mut [0; 8]), Err(4));
    assert_eq!(memory.download(4, &mut [0; 4]), Err(4));
    let mut part = [0; 4];
    assert_eq!(memory.download(0, &mut part), Ok(()));
    assert_eq!(part, [1, 0, 0, 0]);
    memory.begin(Usage::ReadWrite, true);
    memory.store(1, 1, by(&time, 0)).unwrap();
    memory.end();
    assert_eq!(memory.download(0, &mut [0; 8]), Ok(()));
}

// A poll by a plain load may come before the signal or after it: both are races.
#[test]
fn a_plain_load_of_a_flag_races_with_its_signal() {
    let (memory, waits, signals) = (shared(1), Timeline::new(0), Timeline::new(1));
    memory.store_atomic(0, 0, peer(&waits, 0)).unwrap();
    memory.load(0, peer(&waits, 0)).unwrap();
    let race = memory.store_atomic(0, 1, peer(&signals, 0));
    assert!(
        matches!(race, Err(Conflict::Race { other, write: false, .. }) if other.block() == 0),
        "{race:?}"
    );
}
