//! Futures on the heap.

use std::pin::Pin;

/// Makes a future where it stays. `Box::pin` takes one that was made on the stack and moves it to the heap, with all the
/// room that it will need later: kilobytes with every call, of which a few bytes mean something.
#[inline(always)]
pub(crate) fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    // The place comes first, so that there is somewhere to make it.
    let place = Box::new_uninit();
    Box::into_pin(Box::write(place, make()))
}
