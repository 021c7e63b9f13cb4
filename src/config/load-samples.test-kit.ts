import type { SANDBOX_OPTIONS } from "./sandbox-options.ts";

export type Sample = {
  /** Two accepted texts and what they mean; the TOML form when it is not that text in quotes. */
  one: [text: string, value: unknown, toml?: string];
  two: [text: string, value: unknown, toml?: string];
  /** Texts that are refused, and TOML values. */
  bad: string[];
  badToml?: string[];
};

export const integer = (one: number, two: number, min: number, max: number): Sample => ({
  one: [String(one), one, String(one)],
  two: [String(two), two],
  bad: [String(min - 1), String(max + 1), "many", "1.5", "0x10", "1e3", "+5", "5 rows", "9007199254740993"],
  badToml: ["true", "1.5", "[1]", "{ a = 1 }", String(max + 1), "2024-01-01"],
});
export const bytes = (one: number, unit: [string, number], min: number, max: number): Sample => ({
  ...integer(one, one + 1, min, max),
  two: [unit[0], unit[1]],
});
export const path = (name: string): Sample => ({
  one: ["/a/b", "/a/b"],
  two: [`~/${name}`, `/home/u/${name}`],
  bad: ["a\0b"],
  badToml: ["1", "true", "[]"],
});

/** Of the options of sandboxes. */
export const SANDBOX_SAMPLES: Record<keyof typeof SANDBOX_OPTIONS, Sample> = {
  sandboxRuntime: { one: ["runc", "runc"], two: ["off", "off"], bad: ["docker"], badToml: ["true"] },
  sandboxHome: path("boxes"),
  sandboxNodeName: { one: ["node-1", "node-1"], two: ["n", "n"], bad: ["-x"], badToml: ["7"] },
  sandboxNodeLabels: {
    one: ["zone=a,gpu=no", { zone: "a", gpu: "no" }, '["zone=a", "gpu=no"]'],
    two: ["zone=b", { zone: "b" }],
    bad: ["zone", "zone=", "=a", "zone=a,zone=b"],
    badToml: ["7", "[7]"],
  },
  sandboxMaxPerNode: integer(1, 100, 1, 4_000),
  sandboxCpus: integer(1, 64, 1, 100_000),
  sandboxMemoryBytes: bytes(2 ** 26, ["1GiB", 2 ** 30], 2 ** 26, 2 ** 50),
  sandboxDiskBytes: bytes(2 ** 26, ["1GiB", 2 ** 30], 2 ** 26, 2 ** 50),
  sandboxWarmPool: integer(0, 4, 0, 100),
  sandboxFirstHostId: integer(65_536, 1_000_000, 65_536, 4_000_000_000),
  sandboxAllowUnlimited: { one: ["1", true, "true"], two: ["no", false], bad: ["2"], badToml: ["1"] },
  sandboxLeaseSecs: integer(10, 60, 10, 3_600),
  sandboxKillGraceSecs: integer(0, 10, 0, 60),
  sandboxActionWaitSecs: integer(0, 30, 0, 300),
  sandboxPendingTimeoutSecs: integer(1, 60, 1, 86_400),
  sandboxMaxPerTenant: integer(1, 60, 1, 100_000),
  sandboxCreatesPerMinute: integer(1, 60, 1, 1_000_000),
  sandboxCreateBurst: integer(1, 60, 1, 100_000),
  sandboxCallTimeoutSecs: integer(1, 60, 1, 300),
  sandboxEventsKept: integer(1_000, 2_000, 1_000, 100_000_000),
  sandboxEventsRetentionSecs: integer(60, 3_600, 60, 315_360_000),
  sandboxAdvertiseUrl: {
    one: ["https://one.engine.example:8080/", "https://one.engine.example:8080"],
    two: ["http://[::1]:7777/a", "http://[::1]:7777/a"],
    bad: ["engine.example", "https://u:hunter2@a.example", "https://a.example?x=1", "ftp://a"],
    badToml: ["7"],
  },
  sandboxEgressRanges: {
    one: ["10.0.0.0/8, fd00::/8", ["10.0.0.0/8", "fd00::/8"], '["10.0.0.0/8", "fd00::/8"]'],
    two: ["192.168.1.1", ["192.168.1.1"]],
    bad: ["10.0.0.0/33", "10.0.0.0/", "example.com", "::/129", "10.0.0.1/8/8"],
    badToml: ["7", "[7]"],
  },
  sandboxUpstreamProxy: {
    one: ["http://ann:secret@proxy.test:3128", "http://ann:secret@proxy.test:3128/"],
    two: ["http://10.0.0.1", "http://10.0.0.1/"],
    bad: ["proxy:3128", "https://proxy", "http://proxy/path", "socks5://proxy"],
    badToml: ["7"],
  },
  sandboxDebianImage: { one: ["1", true, "true"], two: ["no", false], bad: ["2"], badToml: ["1"] },
  sandboxCaFile: path("ca.pem"),
};

export const SANDBOX_DEFAULTS: Readonly<Record<keyof typeof SANDBOX_OPTIONS, unknown>> = {
  sandboxRuntime: "auto",
  sandboxHome: "/home/u/.engine/sandboxes",
  sandboxNodeName: undefined,
  sandboxNodeLabels: {},
  sandboxMaxPerNode: 250,
  sandboxCpus: undefined,
  sandboxMemoryBytes: undefined,
  sandboxDiskBytes: undefined,
  sandboxWarmPool: 2,
  sandboxFirstHostId: 1_879_048_192,
  sandboxAllowUnlimited: false,
  sandboxLeaseSecs: 30,
  sandboxKillGraceSecs: 3,
  sandboxActionWaitSecs: 10,
  sandboxPendingTimeoutSecs: 120,
  sandboxMaxPerTenant: 500,
  sandboxCreatesPerMinute: 600,
  sandboxCreateBurst: 100,
  sandboxCallTimeoutSecs: 15,
  sandboxEventsKept: 100_000,
  sandboxEventsRetentionSecs: 604_800,
  sandboxAdvertiseUrl: undefined,
  sandboxEgressRanges: [],
  sandboxUpstreamProxy: undefined,
  sandboxDebianImage: false,
  sandboxCaFile: undefined,
};
