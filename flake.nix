{
  description = "Headwater: records agent sessions from outside and grades them so that anybody can check";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { nixpkgs, ... }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      forEach = nixpkgs.lib.genAttrs systems;
    in
    {
      # What `./run` needs, for machines where it may not install anything itself.
      devShells = forEach (
        system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        {
          default = pkgs.mkShell {
            packages = with pkgs; [
              bubblewrap
              cargo
              clippy
              git
              jq
              python3
              rustc
              rustfmt
              util-linux
            ];
          };
        }
      );
    };
}
