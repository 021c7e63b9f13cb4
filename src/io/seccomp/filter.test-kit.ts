import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { seccompFilter } from "./filter.ts";
import { type SeccompArchitecture, SECCOMP_ARCHITECTURES, syscallNumbers } from "./numbers.ts";

const here = SECCOMP_ARCHITECTURES.find((architecture) => architecture === process.arch);

/** That of this computer; fails where there is no filter. */
export function architectureHere(): SeccompArchitecture {
  if (here === undefined) throw new Error(`there is no filter for ${process.arch}`);
  return here;
}

/** Takes on the filter in the file, and becomes the program. Needs no rights. */
const UNDER_FILTER = `
my ($prctl, $file, @command) = @ARGV;
open(my $in, "<", $file) or die "no filter: $!";
my $filter = do { local $/; <$in> };
my $program = pack("S x6 P", length($filter) / 8, $filter);
my $zero = 0;
syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
syscall($prctl, 22, 2, $program) == 0 or die "seccomp: $!";
exec { $command[0] } @command or die "cannot run $command[0]: $!";
`;

/** Runs programs under the filter of this computer's architecture. */
export function underFilter(): (program: string, ...args: readonly string[]) => ReturnType<typeof spawnSync> {
  const folder = mkdtempSync(join(tmpdir(), "engine-seccomp-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "filter");
  writeFileSync(file, seccompFilter(architectureHere()));
  const prctl = String(syscallNumbers(architectureHere()).get("prctl"));
  return (program, ...args) =>
    spawnSync("perl", ["-e", UNDER_FILTER, prctl, file, program, ...args], {
      encoding: "utf8",
      timeout: 60_000,
      cwd: folder,
    });
}
