//! A size as it is typed: `2GiB`, `128MiB`.

use std::str::FromStr;

/// Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let units = [("GiB", 30), ("MiB", 20)];
        let read = |(unit, power): (&str, u32)| {
            let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
            number.checked_mul(1 << power).filter(|size| *size > 0)
        };
        let found = units.into_iter().find_map(read).map(Self);
        found.ok_or_else(|| format!("{text:?} is not a size: write it as 2GiB or 128MiB"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_and_are_more_than_nothing() {
        assert_eq!("2GiB".parse(), Ok(Size(2 << 30)));
        assert_eq!("128 MiB".parse(), Ok(Size(128 << 20)));
        for bad in ["2", "0GiB", "GiB", "-1GiB", "99999999999999999GiB", "2GB"] {
            let said = bad.parse::<Size>().expect_err("a refusal");
            assert!(said.ends_with("is not a size: write it as 2GiB or 128MiB"));
        }
    }
}
