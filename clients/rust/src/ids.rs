//! Random numbers: unique ids, and the jitter of pauses.

/// A unique id, in the form of a random UUID.
pub(crate) fn new_id() -> String {
    let mut bytes = [0u8; 16];
    // Without it ids could collide, and what two callers say would be taken for one.
    getrandom::fill(&mut bytes).expect("random numbers from the operating system");
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Chooses an id where the caller has not; every attempt then carries the same.
pub(crate) fn fill(id: &mut String) {
    if id.is_empty() {
        *id = new_id();
    }
}

/// A random number in [0, 1).
pub(crate) fn uniform() -> f64 {
    let bits = getrandom::u64().unwrap_or(1 << 63);
    (bits >> 11) as f64 / (1u64 << 53) as f64
}
