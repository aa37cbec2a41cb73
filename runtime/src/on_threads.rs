//! Pieces of work on threads of their own.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, scope};

/// Does pieces of work, each on a thread, the first on the caller's. A piece for which the system
/// starts no thread is done by the caller too. The results are in the order of the pieces.
pub fn on_threads<W: Send, T: Send>(pieces: Vec<W>, work: impl Fn(W) -> T + Sync) -> Vec<T> {
    // A thread that does not start leaves its piece here.
    let slots: Vec<_> = pieces.into_iter().map(|piece| Mutex::new(Some(piece))).collect();
    let take = |slot: &Mutex<Option<W>>| {
        let piece = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        piece.map(&work)
    };
    let (take, Some((first, others))) = (&take, slots.split_first()) else { return Vec::new() };
    scope(|scope| {
        let start = |slot| Builder::new().spawn_scoped(scope, move || take(slot)).map_err(|_| slot);
        let started: Vec<_> = others.iter().map(start).collect();
        let first = take(first);
        let rest = started.into_iter().map(|thread| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(slot) => take(slot),
        });
        std::iter::once(first).chain(rest).flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        assert_eq!(on_threads((0..9).collect(), |piece| piece * piece).iter().sum::<i32>(), 204);
        assert_eq!(on_threads(vec![3, 1, 2], |piece| piece + 1), [4, 2, 3]);
        assert!(on_threads(Vec::<i32>::new(), |piece| piece).is_empty());
    }
}
