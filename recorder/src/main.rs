//! The binary `headwater-recorder`.

fn main() -> std::process::ExitCode {
    headwater_recorder::confine::launcher::entered().map_or_else(headwater_recorder::cli::main, Into::into)
}
