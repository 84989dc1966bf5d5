//! Reading parameters as the original does: `null` is the same as absent, and `5.0` is a whole number.

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Number;

/// A value, or the type's zero for `null`.
pub(crate) fn nullable<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A whole number, however it is written.
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else {
        return Ok(0);
    };
    whole_of(&number).ok_or_else(|| D::Error::custom(format!("{number} is not a whole number")))
}

fn whole_of(number: &Number) -> Option<i64> {
    // Beyond this a number with a point no longer tells its neighbours apart.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_i64().or_else(|| {
        let real = number.as_f64()?;
        let exact = real.fract() == 0.0 && real.abs() <= EXACT && !number.is_u64();
        #[allow(
            clippy::cast_possible_truncation,
            reason = "it is whole and within range"
        )]
        exact.then_some(real as i64)
    })
}
