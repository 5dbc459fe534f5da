//! The binary `headwater-recorder`.

fn main() -> std::process::ExitCode {
    headwater_recorder::cli::main()
}
