//! Writes the generated part of the client: messages and stubs (`src/gen/nodewise.*.rs`), a method and a few facts for
//! every RPC (`methods.rs`), the columns of what is measured (`columns.rs`), and the descriptors that the conformance
//! executable reads JSON by. `make stubs` runs it; by hand, in `clients/rust`:
//!
//! ```text
//! ../../.venv/bin/buf build ../.. --as-file-descriptor-set -o ../../build/contract.binpb
//! cargo run -p nodewise-client-generate -- ../../build/contract.binpb .
//! ```

mod columns;
mod methods;

use std::{env, fs, path::Path, process::ExitCode};

use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [image, client] = arguments.as_slice() else {
        eprintln!("usage: nodewise-client-generate DESCRIPTOR_SET CLIENT; see the head of generate/src/main.rs");
        return ExitCode::FAILURE;
    };
    let set = FileDescriptorSet::decode(fs::read(image).expect("the descriptor set").as_slice()).expect("descriptors");
    let set = trimmed(set);
    let stubs = Path::new(client).join("src/gen");
    let descriptors = Path::new(client).join("conformance/gen");
    fs::create_dir_all(&stubs).expect("a folder for the stubs");
    fs::create_dir_all(&descriptors).expect("a folder for the descriptors");
    tonic_prost_build::configure()
        .btree_map(".")
        .build_server(false)
        .out_dir(&stubs)
        .compile_fds(set.clone())
        .expect("generated stubs");
    let own: Vec<FileDescriptorProto> = set.file.iter().filter(|file| is_own(file)).cloned().collect();
    fs::write(stubs.join("methods.rs"), methods::written(&own)).expect("the methods");
    fs::write(stubs.join("columns.rs"), columns::written(&own)).expect("the columns");
    fs::write(descriptors.join("descriptors.binpb"), without_comments(set)).expect("the descriptors");
    ExitCode::SUCCESS
}

fn is_own(file: &FileDescriptorProto) -> bool {
    file.package().starts_with("nodewise.")
}

/// The descriptors without the files that only options of the contract need.
fn trimmed(mut set: FileDescriptorSet) -> FileDescriptorSet {
    set.file.retain(|file| is_own(file) || file.package() == "google.protobuf");
    for file in &mut set.file {
        file.dependency.retain(|name| !name.starts_with("google/api/"));
    }
    set
}

/// The same without comments and without what is said for generators of other languages.
fn without_comments(mut set: FileDescriptorSet) -> Vec<u8> {
    for file in &mut set.file {
        file.source_code_info = None;
        file.options = None;
    }
    set.encode_to_vec()
}
