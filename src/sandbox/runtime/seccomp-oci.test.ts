import { expect, it } from "vitest";
import { ociSeccomp } from "./seccomp-oci.ts";

const profile = ociSeccomp("x64");

/** What the profile says of a call with these arguments, as libseccomp reads it. */
function actionOf(name: string, ...args: readonly number[]): string {
  const entries = profile.syscalls.filter((entry) => entry.names.includes(name));
  const matches = (entry: (typeof entries)[number]): boolean =>
    (entry.args ?? []).every(({ index, value, valueTwo }) => {
      return (BigInt(args[index] ?? 0) & BigInt(value)) === BigInt(valueTwo);
    });
  const action = entries.find(matches)?.action ?? profile.defaultAction;
  return action === "SCMP_ACT_ALLOW" ? "allowed" : "refused";
}

it("allows what the filter allows", () => {
  expect(profile.architectures).toEqual(["SCMP_ARCH_X86_64"]);
  expect(["read", "execve", "ptrace"].map((name) => actionOf(name))).toEqual(["allowed", "allowed", "allowed"]);
  expect(["bpf", "mount", "keyctl", "clone3"].map((name) => actionOf(name))).toEqual(Array(4).fill("refused"));
  expect(profile.syscalls.find((entry) => entry.names.includes("clone3"))).toMatchObject({ errnoRet: 38 });
});

it("tests arguments by the bits that the kernel looks at", () => {
  const high = 2 ** 32;
  const terminal = [0x5411, 0x5412, 0x5413, 0x541b, 0x541c, 0x541d, 0, 0xffff_ffff, 0x5412 + high, 0x5412 + 5 * high];
  expect(terminal.map((request) => actionOf("ioctl", 0, request))).toEqual(
    terminal.map((request) => ([0x5412, 0x541c].includes(request % high) ? "refused" : "allowed")),
  );
  expect(actionOf("clone", 0x11)).toBe("allowed");
  expect(actionOf("clone", 0x1000_0011)).toBe("refused");
  expect([1, 2, 10, 17, 38, 40].map((family) => actionOf("socket", family, 1, 5))).toEqual([
    "allowed",
    "allowed",
    "allowed",
    "refused",
    "refused",
    "refused",
  ]);
  expect([0, 9].map((protocol) => actionOf("socket", 16, 3, protocol))).toEqual(["allowed", "refused"]);
});

it("has no entry with two tests of one argument, which runtimes read in different ways", () => {
  for (const { args = [] } of profile.syscalls) {
    expect(new Set(args.map((argument) => argument.index)).size).toBe(args.length);
  }
});
