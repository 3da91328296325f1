class Nodecast < Formula
  desc "Forecast cost and wait times of an EKS cluster under an autoscaling policy"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@URL@/nodecast-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@aarch64_apple_darwin@"
    end
    on_intel do
      url "@URL@/nodecast-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@x86_64_apple_darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@URL@/nodecast-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@aarch64_unknown_linux_musl@"
    end
    on_intel do
      url "@URL@/nodecast-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@x86_64_unknown_linux_musl@"
    end
  end

  def install
    bin.install "nodecast", "kubectl-nodecast"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/nodecast.bash" => "nodecast"
    zsh_completion.install "completions/_nodecast"
    fish_completion.install "completions/nodecast.fish"
  end

  test do
    system bin/"nodecast", "init", "shop"
    system bin/"nodecast", "validate", "shop/scenario.yaml"
  end
end
