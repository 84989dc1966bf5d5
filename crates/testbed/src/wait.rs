//! Waiting with a name and a deadline: what was waited for and what was seen last stand in the
//! error.

use crate::error::Error;
use crate::kernel::patience;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looks again and again until the look succeeds; a look that fails says what it saw. The deadline is
/// the machine's: in the second kernel everything has more time.
pub async fn until<T>(
    what: &str,
    after: Duration,
    mut look: impl AsyncFnMut() -> Result<T, String>,
) -> Result<T, Error> {
    let after = patience(after);
    let deadline = Instant::now() + after;
    let mut last = "nothing was seen yet".to_owned();
    while Instant::now() < deadline {
        match timeout_at(deadline, look()).await {
            Ok(Ok(seen)) => return Ok(seen),
            Ok(Err(seen)) => last = seen,
            Err(_) => last = format!("{last}, and the last look was not answered"),
        }
        sleep_until(Instant::now() + LOOK_EVERY).await;
    }
    Err(Error::Deadline {
        what: what.to_owned(),
        after,
        last,
    })
}
