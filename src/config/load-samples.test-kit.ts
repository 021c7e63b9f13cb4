import type { OAUTH_OPTIONS } from "./oauth-options.ts";
import { PROVIDER_URLS } from "./sandbox-kinds.ts";
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

const GITHUB = { client_id: "an-app", client_secret: "hunter2", scopes: ["repo", "gist"] };
const OWN = {
  client_id: "a",
  client_secret: "s",
  title: "Our Git",
  authorize_url: "https://git.example/authorize",
  token_url: "http://127.0.0.1:8080/token",
  device_authorization_url: "https://git.example/device",
  parameters: { audience: "git" },
  client_authentication: "basic",
  pkce: false,
};
const ISSUED = { client_id: "a", client_secret: "hunter2", issuer: "https://id.example/realms/x" };

/** Of the options of connected accounts. */
export const OAUTH_SAMPLES: Record<keyof typeof OAUTH_OPTIONS, Sample> = {
  oauthRedirectBase: {
    one: ["https://engine.example/", "https://engine.example"],
    two: ["http://[::1]:7777", "http://[::1]:7777"],
    bad: [
      "engine.example",
      "https://engine.example/path",
      "https://u:hunter2@a.example",
      "https://a.example?",
      "ftp://a",
    ],
    badToml: ["1"],
  },
  oauthUiReturnBase: {
    one: ["https://ui.example/app/", "https://ui.example/app"],
    two: ["http://localhost:5173", "http://localhost:5173"],
    bad: ["ui.example", "https://ui.example#x", "javascript:alert(1)", "http://u:hunter2@h"],
    badToml: ["1"],
  },
  oauthGoogleClientId: { one: ["a.b-1", "a.b-1"], two: ["2", "2"], bad: ["a b"], badToml: ["1"] },
  oauthGoogleClientSecret: { one: ["s-1", "s-1"], two: ["x_y", "x_y"], bad: ["a b"], badToml: ["1"] },
  oauthNotionClientId: { one: ["a.b-1", "a.b-1"], two: ["2", "2"], bad: ["a b"], badToml: ["1"] },
  oauthNotionClientSecret: { one: ["s-1", "s-1"], two: ["x_y", "x_y"], bad: ["a b"], badToml: ["1"] },
  oauthAtlassianClientId: { one: ["a.b-1", "a.b-1"], two: ["2", "2"], bad: ["a b"], badToml: ["1"] },
  oauthAtlassianClientSecret: { one: ["s-1", "s-1"], two: ["x_y", "x_y"], bad: ["a b"], badToml: ["1"] },
  oauthSlackClientId: { one: ["a.b-1", "a.b-1"], two: ["2", "2"], bad: ["a b"], badToml: ["1"] },
  oauthSlackClientSecret: { one: ["s-1", "s-1"], two: ["x_y", "x_y"], bad: ["a b"], badToml: ["1"] },
  oauthProviders: {
    one: [
      JSON.stringify({ github: GITHUB }),
      { github: GITHUB },
      '{ github = { client_id = "an-app", client_secret = "hunter2", scopes = ["repo", "gist"] } }',
    ],
    two: [JSON.stringify({ "our-git": OWN, id: ISSUED }), { "our-git": OWN, id: ISSUED }],
    bad: [
      "hunter2",
      '{"github": {"client_id": "a"}}',
      '{"github": {"client_id": "a", "client_secret": "hunter2", "client_scret": "x"}}',
      '{"ours": {"client_id": "a", "client_secret": "hunter2"}}',
      '{"ours": {"client_id": "a", "client_secret": "hunter2", "token_url": "https://a.example/t"}}',
      '{"ours": {"client_id": "a", "client_secret": "hunter2", "issuer": "http://a.example"}}',
      '{"ours": {"client_id": "a", "client_secret": "hunter2", "issuer": "https://u:hunter2@a.example"}}',
      '{"Our Git": {"client_id": "a", "client_secret": "hunter2", "issuer": "https://a.example"}}',
      '{"constructor": {"client_id": "a", "client_secret": "hunter2"}}',
    ],
    badToml: ["7", "[]", "{ github = 1 }", '{ github = { client_id = "a" } }'],
  },
  oauthRedirectUris: {
    one: [
      "https://ui.example/done?x=1, http://localhost:5173/cb",
      ["https://ui.example/done?x=1", "http://localhost:5173/cb"],
      '["https://ui.example/done?x=1", "http://localhost:5173/cb"]',
    ],
    two: ["https://ui.example", ["https://ui.example"]],
    bad: [
      "ui.example",
      "http://ui.example",
      "https://ui.example#x",
      "https://u:hunter2@a.example",
      "javascript:alert(1)",
    ],
    badToml: ["7", "[7]", "[]"],
  },
};

export const OAUTH_DEFAULTS: Readonly<Record<keyof typeof OAUTH_SAMPLES, unknown>> = {
  oauthRedirectBase: "http://localhost:8080",
  oauthUiReturnBase: undefined,
  oauthGoogleClientId: undefined,
  oauthGoogleClientSecret: undefined,
  oauthNotionClientId: undefined,
  oauthNotionClientSecret: undefined,
  oauthAtlassianClientId: undefined,
  oauthAtlassianClientSecret: undefined,
  oauthSlackClientId: undefined,
  oauthSlackClientSecret: undefined,
  oauthProviders: {},
  oauthRedirectUris: undefined,
};

/** Of the options of sandboxes. */
const hosts: Sample = {
  one: ["git.example, *.git.Example", ["git.example", "*.git.example"], '["git.example", "*.git.Example"]'],
  two: ["10.0.0.1", ["10.0.0.1"]],
  bad: ["https://git.example", "git.example/path", "a b", "*", ".example", "a,,b"],
  badToml: ["7", "[7]"],
};

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
  sandboxImageBuilds: integer(1, 4, 1, 64),
  sandboxImageBuildCpus: integer(1, 4, 1, 256),
  sandboxImageBuildMemoryBytes: bytes(2 ** 26, ["1GiB", 2 ** 30], 2 ** 26, 2 ** 40),
  sandboxImageBuildDiskBytes: bytes(2 ** 26, ["1GiB", 2 ** 30], 2 ** 26, 2 ** 40),
  sandboxImageBuildTimeoutSecs: integer(10, 600, 10, 86_400),
  sandboxImageCacheBytes: bytes(2 ** 26, ["1GiB", 2 ** 30], 2 ** 26, 2 ** 50),
  sandboxImagesPerTenant: integer(1, 10, 1, 10_000),
  sandboxDefaultImages: {
    one: ["codex=debian,opencode=node", { codex: "debian", opencode: "node" }, '["codex=debian", "opencode=node"]'],
    two: ["codex=host", { codex: "host" }],
    bad: ["codex", "codex=", "=a"],
    badToml: ["7", "[7]"],
  },
  sandboxDefaultRegion: { one: ["eu-1", "eu-1"], two: ["n", "n"], bad: ["-x"], badToml: ["7"] },
  sandboxDefaultInstanceType: { one: ["large", "large"], two: ["n", "n"], bad: ["-x"], badToml: ["7"] },
  sandboxMaxPerNode: integer(1, 100, 1, 4_000),
  sandboxCpus: integer(1, 64, 1, 100_000),
  sandboxMemoryBytes: bytes(2 ** 26, ["1GiB", 2 ** 30], 2 ** 26, 2 ** 50),
  sandboxDiskBytes: bytes(2 ** 26, ["1GiB", 2 ** 30], 2 ** 26, 2 ** 50),
  sandboxVolumeDays: integer(0, 90, 0, 36_500),
  sandboxVolumesPerOwner: integer(1, 60, 1, 100_000),
  sandboxVolumesBytesPerOwner: bytes(2 ** 24, ["1GiB", 2 ** 30], 2 ** 24, 2 ** 50),
  sandboxWarmPool: integer(0, 4, 0, 100),
  sandboxFirstHostId: integer(65_536, 1_000_000, 65_536, 4_000_000_000),
  sandboxIdRanges: integer(1, 500, 1, 60_000),
  sandboxAllowUnlimited: { one: ["1", true, "true"], two: ["no", false], bad: ["2"], badToml: ["1"] },
  sandboxLeaseSecs: integer(10, 60, 10, 3_600),
  sandboxKillGraceSecs: integer(0, 10, 0, 60),
  sandboxActionWaitSecs: integer(0, 30, 0, 300),
  sandboxPendingTimeoutSecs: integer(1, 60, 1, 86_400),
  sandboxMaxPerTenant: integer(1, 60, 1, 100_000),
  sandboxMaxWorkspaces: integer(1, 60, 1, 100_000),
  sandboxCreatesPerMinute: integer(1, 60, 1, 1_000_000),
  sandboxCreateBurst: integer(1, 60, 1, 100_000),
  sandboxCallTimeoutSecs: integer(1, 60, 1, 300),
  sandboxEventsKept: integer(1_000, 2_000, 1_000, 100_000_000),
  sandboxEventsBytes: bytes(2 ** 20, ["1GiB", 2 ** 30], 2 ** 20, 2 ** 40),
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
  sandboxRepositoryHosts: hosts,
  sandboxPlainHttpRepositories: { one: ["1", true, "true"], two: ["no", false], bad: ["2"], badToml: ["1"] },
  sandboxRegistryHosts: hosts,
  sandboxUpstreamProxy: {
    one: ["http://ann:secret@proxy.test:3128", "http://ann:secret@proxy.test:3128/"],
    two: ["http://10.0.0.1", "http://10.0.0.1/"],
    bad: ["proxy:3128", "https://proxy", "http://proxy/path", "socks5://proxy"],
    badToml: ["7"],
  },
  sandboxDebianImage: { one: ["1", true, "true"], two: ["no", false], bad: ["2"], badToml: ["1"] },
  sandboxAgentCommands: {
    one: ["codex=/opt/agent --acp", { codex: ["/opt/agent", "--acp"] }, '["codex=/opt/agent --acp"]'],
    two: ["codex=a;opencode=b c", { codex: ["a"], opencode: ["b", "c"] }, '["codex=a", "opencode=b c"]'],
    bad: ["codex", "codex=a;codex=b", "=a", "codex= "],
    badToml: ["7", "['codex']", "[1]"],
  },
  sandboxProviderUrls: {
    one: [
      "codex=https://Models.test:8443/v1/",
      { ...PROVIDER_URLS, codex: "https://models.test:8443/v1" },
      '["codex=https://models.test:8443/v1"]',
    ],
    two: ["own=http://10.0.0.1", { ...PROVIDER_URLS, own: "http://10.0.0.1" }, '["own=http://10.0.0.1"]'],
    bad: [
      "codex",
      "Codex=https://a",
      "codex=ftp://a",
      "codex=https://u:p@a",
      "codex=https://a?b",
      "codex=https://a,codex=https://b",
    ],
    badToml: ["7", "['codex']", "[1]"],
  },
  sandboxCaFile: path("ca.pem"),
};

export const SANDBOX_DEFAULTS: Readonly<Record<keyof typeof SANDBOX_OPTIONS, unknown>> = {
  sandboxRuntime: "auto",
  sandboxHome: "/home/u/.engine/sandboxes",
  sandboxNodeName: undefined,
  sandboxNodeLabels: {},
  sandboxImageBuilds: 1,
  sandboxImageBuildCpus: 2,
  sandboxImageBuildMemoryBytes: 2 ** 31,
  sandboxImageBuildDiskBytes: 2 ** 33,
  sandboxImageBuildTimeoutSecs: 1_800,
  sandboxImageCacheBytes: 20 * 2 ** 30,
  sandboxImagesPerTenant: 100,
  sandboxDefaultImages: {},
  sandboxDefaultRegion: "local",
  sandboxDefaultInstanceType: "standard",
  sandboxMaxPerNode: 250,
  sandboxCpus: undefined,
  sandboxMemoryBytes: undefined,
  sandboxDiskBytes: undefined,
  sandboxVolumeDays: 30,
  sandboxVolumesPerOwner: 500,
  sandboxVolumesBytesPerOwner: 2 ** 40,
  sandboxWarmPool: 2,
  sandboxFirstHostId: 1_879_048_192,
  sandboxIdRanges: undefined,
  sandboxAllowUnlimited: false,
  sandboxLeaseSecs: 30,
  sandboxKillGraceSecs: 3,
  sandboxActionWaitSecs: 10,
  sandboxPendingTimeoutSecs: 120,
  sandboxMaxPerTenant: 500,
  sandboxMaxWorkspaces: 1_000,
  sandboxCreatesPerMinute: 600,
  sandboxCreateBurst: 100,
  sandboxCallTimeoutSecs: 15,
  sandboxEventsKept: 100_000,
  sandboxEventsBytes: 2 ** 26,
  sandboxEventsRetentionSecs: 604_800,
  sandboxAdvertiseUrl: undefined,
  sandboxEgressRanges: [],
  sandboxRepositoryHosts: ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org"],
  sandboxPlainHttpRepositories: false,
  sandboxRegistryHosts: [
    "deb.debian.org",
    "security.debian.org",
    "pypi.org",
    "files.pythonhosted.org",
    "registry.npmjs.org",
    "index.crates.io",
    "static.crates.io",
  ],
  sandboxUpstreamProxy: undefined,
  sandboxDebianImage: false,
  sandboxAgentCommands: {},
  sandboxProviderUrls: PROVIDER_URLS,
  sandboxCaFile: undefined,
};
