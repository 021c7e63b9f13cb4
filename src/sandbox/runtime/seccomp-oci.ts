import type { SeccompArchitecture } from "../../io/seccomp/numbers.ts";
import { syscallNumbers } from "../../io/seccomp/numbers.ts";
import { ALLOWED, type ArgumentRule, type ArgumentTest, EPERM, RULES } from "../../io/seccomp/rules.ts";

/** `linux.seccomp` of a configuration of the OCI runtime specification. */
export type OciSeccomp = {
  defaultAction: "SCMP_ACT_ERRNO";
  defaultErrnoRet: number;
  architectures: readonly string[];
  syscalls: readonly OciSyscalls[];
};

type OciSyscalls = {
  names: readonly string[];
  action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  errnoRet?: number;
  args?: readonly OciArgument[];
};

/** The argument, with the bits of `value` alone, is `valueTwo`. */
type OciArgument = { index: number; op: "SCMP_CMP_MASKED_EQ"; value: number; valueTwo: number };

const ARCHITECTURES: Readonly<Record<SeccompArchitecture, string>> = {
  x64: "SCMP_ARCH_X86_64",
  arm64: "SCMP_ARCH_AARCH64",
};

/**
 * The table in `io/seccomp/rules.ts` for an OCI runtime. What is not allowed fails with EPERM there, also where our own
 * filter has another error, but for calls that are never allowed.
 */
export function ociSeccomp(architecture: SeccompArchitecture): OciSeccomp {
  const numbers = syscallNumbers(architecture);
  const names = ALLOWED.filter((name) => numbers.has(name));
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: EPERM,
    architectures: [ARCHITECTURES[architecture]],
    syscalls: [{ names, action: "SCMP_ACT_ALLOW" }, ...RULES.flatMap(ruleEntries)],
  };
}

function ruleEntries({ call, errno, anyOf }: ArgumentRule): OciSyscalls[] {
  if (anyOf.length === 0) return [{ names: [call], action: "SCMP_ACT_ERRNO", errnoRet: errno }];
  return anyOf.flatMap((tests) =>
    combinations(tests.map(argumentsOf)).map((args) => ({ names: [call], action: "SCMP_ACT_ALLOW" as const, args })),
  );
}

/** One comparison of each list, in all ways. */
function combinations([first, ...rest]: readonly (readonly OciArgument[])[]): OciArgument[][] {
  if (first === undefined) return [[]];
  const others = combinations(rest);
  return first.flatMap((argument) => others.map((row) => [argument].concat(row)));
}

/** Comparisons of which one holds when the test does. */
function argumentsOf(test: ArgumentTest): OciArgument[] {
  const { argument: index, mask = 0xffff_ffff } = test;
  const equal = (bits: number, value: number): OciArgument => ({
    index,
    op: "SCMP_CMP_MASKED_EQ",
    value: bits >>> 0,
    valueTwo: value >>> 0,
  });
  if ("isOneOf" in test) return test.isOneOf.map((value) => equal(mask, value));
  return complement(test.isNoneOf).map(([bits, value]) => equal(bits, value));
}

/**
 * All 32-bit numbers but these, as pairs of a mask and a value: there is no comparison that says "is none of". From the
 * highest bit on, what differs from all of them there is one pair; the rest is looked at bit by bit.
 */
function complement(
  values: readonly number[],
  bit = 31,
  prefix: readonly [number, number] = [0, 0],
): [number, number][] {
  if (bit < 0) return [];
  const [mask, value] = prefix;
  const at = 2 ** bit;
  return [0, at].flatMap((half) => {
    const within: [number, number] = [mask + at, value + half];
    const inHalf = values.filter((v) => Math.floor(v / at) % 2 === half / at);
    return inHalf.length === 0 ? [within] : complement(inHalf, bit - 1, within);
  });
}
