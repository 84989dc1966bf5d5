//! Quantities in one spelling: the API server writes `1000m` as `1`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

const SUFFIXES: [(&str, f64); 14] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
];

/// The quantity in one spelling; one that cannot be read stays as it is.
pub(crate) fn canonical(quantity: &Quantity) -> String {
    let text = quantity.0.trim();
    let suffix = SUFFIXES.iter().find(|(name, _)| text.ends_with(name));
    let (number, factor) = match suffix {
        Some((name, factor)) => (&text[..text.len() - name.len()], *factor),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(number) => format!("{:e}", number * factor),
        Err(_) => text.to_owned(),
    }
}
