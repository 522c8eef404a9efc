//! The README shows what is run as an example.

#[test]
fn the_readmes_example_is_the_one_that_runs() {
    let example = include_str!("../examples/readme.rs");
    assert!(include_str!("../README.md").contains(&format!("```rust\n{example}```")));
}
