//! The binary `headwater`.

fn main() -> std::process::ExitCode {
    headwater::cli::main()
}
