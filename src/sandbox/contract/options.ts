import { join } from "node:path";
import { IMAGE_OPTIONS } from "./image-options.ts";
import { derived, option, optional, valuesOf, type OptionValues } from "../../config/option.ts";
import type { Config } from "../../config/options.ts";
import * as kinds from "../../config/kinds.ts";
import {
  addressRanges,
  commandPairs,
  hostRules,
  labelPairs,
  PROVIDER_URLS,
  providerUrls,
  proxyUrl,
} from "./option-kinds.ts";

const MIB = 2 ** 20;
const TIB = 2 ** 40;

/** The options of the feature: of sandboxes, and of the nodes that run them. */
export const SANDBOX_OPTIONS = {
  ...IMAGE_OPTIONS,
  sandboxRuntime: option({
    env: "ENGINE_SANDBOX_RUNTIME",
    toml: "sandbox.runtime",
    kind: kinds.oneOf(["auto", "bubblewrap", "runc", "runsc", "off"]),
    default: "auto",
    side: "SC",
    doc:
      "What makes the machines of sandboxes. `auto` takes what is installed, bubblewrap before runc; where there is " +
      "neither, or this is not Linux, or not root, the node runs no sandboxes. `runsc` (gVisor) gives each a kernel of " +
      "its own. `off`: no sandboxes in any case.",
  }),
  sandboxHome: derived({
    env: "ENGINE_SANDBOX_HOME",
    toml: "sandbox.home",
    kind: kinds.path,
    defaultOf: ({ home }) => join(home, "sandboxes"),
    defaultShown: "$ENGINE_HOME/sandboxes",
    derivedFrom: "home",
    side: "SC",
    doc: "Folder of a node for sandboxes: its identity, machines, images and volumes. One process at a time works in it.",
  }),
  sandboxNodeName: optional({
    env: "ENGINE_SANDBOX_NODE_NAME",
    toml: "sandbox.node_name",
    kind: kinds.userName,
    whenUnset: "the host's name",
    side: "SC",
    doc: "What a node that runs sandboxes calls itself.",
  }),
  sandboxNodeLabels: option({
    env: "ENGINE_SANDBOX_NODE_LABELS",
    toml: "sandbox.node_labels",
    kind: labelPairs,
    default: {},
    side: "SC",
    doc: "Labels of a node that runs sandboxes, for placement: `name=value`, separated by commas.",
  }),
  sandboxMaxPerNode: option({
    env: "ENGINE_SANDBOX_MAX_PER_NODE",
    toml: "sandbox.max_per_node",
    kind: kinds.integer({ min: 1, max: 4_000 }),
    default: 250,
    side: "SC",
    doc: "Sandboxes that a node has at once, stopped persistent ones among them.",
  }),
  sandboxCpus: optional({
    env: "ENGINE_SANDBOX_CPUS",
    toml: "sandbox.cpus",
    kind: kinds.integer({ min: 1, max: 100_000 }),
    whenUnset: "four times those of the machine",
    side: "SC",
    doc:
      "CPUs that a node promises to sandboxes. They are limits, not reservations, and most sandboxes idle, so they may " +
      "be promised several times over.",
  }),
  sandboxMemoryBytes: optional({
    env: "ENGINE_SANDBOX_MEMORY_BYTES",
    toml: "sandbox.memory_bytes",
    kind: kinds.bytes({ min: 64 * MIB, max: 1_024 * TIB }),
    whenUnset: "9/10 of the machine's memory",
    side: "SC",
    doc: "Memory that a node promises to sandboxes.",
  }),
  sandboxDiskBytes: optional({
    env: "ENGINE_SANDBOX_DISK_BYTES",
    toml: "sandbox.disk_bytes",
    kind: kinds.bytes({ min: 64 * MIB, max: 1_024 * TIB }),
    whenUnset: "9/10 of what is free, or sandboxes take, where ENGINE_SANDBOX_HOME is",
    side: "SC",
    doc: "Disk that a node promises to sandboxes.",
  }),
  sandboxVolumeDays: option({
    env: "ENGINE_SANDBOX_VOLUME_DAYS",
    toml: "sandbox.volume_days",
    kind: kinds.integer({ min: 0, max: 36_500 }),
    default: 30,
    side: "SC",
    doc:
      "Days after its last use at which a volume that no sandbox names any more expires; 0: never. Sandboxes that are " +
      "stopped name their volumes. On a node also the days until it removes what the catalog does not know as a volume.",
  }),
  sandboxVolumesPerOwner: option({
    env: "ENGINE_SANDBOX_VOLUMES_PER_OWNER",
    toml: "sandbox.volumes_per_owner",
    kind: kinds.integer({ min: 1, max: 100_000 }),
    default: 500,
    side: "S",
    doc: "Volumes that one caller has at once. More are refused with `rate_limited`.",
  }),
  sandboxVolumesBytesPerOwner: option({
    env: "ENGINE_SANDBOX_VOLUMES_BYTES_PER_OWNER",
    toml: "sandbox.volumes_bytes_per_owner",
    kind: kinds.bytes({ min: 16 * MIB, max: 1_024 * TIB }),
    default: TIB,
    side: "S",
    doc: "Sizes of all volumes of one caller together. More are refused with `rate_limited`.",
  }),
  sandboxWarmPool: option({
    env: "ENGINE_SANDBOX_WARM_POOL",
    toml: "sandbox.warm_pool",
    kind: kinds.integer({ min: 0, max: 100 }),
    default: 2,
    side: "SC",
    doc:
      "Prepared machines that wait for the next sandbox, for each image. A server that runs everything prepares none " +
      "before its first sandbox.",
  }),
  sandboxFirstHostId: option({
    env: "ENGINE_SANDBOX_FIRST_HOST_ID",
    toml: "sandbox.first_host_id",
    kind: kinds.integer({ min: 65_536, max: 4_000_000_000 }),
    // From here on, neither Linux distributions nor systemd give out ids.
    default: 0x7000_0000,
    side: "SC",
    doc: "First of the user and group ids of the host that are those of sandboxes. No one else may have them.",
  }),
  sandboxIdRanges: optional({
    env: "ENGINE_SANDBOX_ID_RANGES",
    toml: "sandbox.id_ranges",
    kind: kinds.integer({ min: 1, max: 60_000 }),
    whenUnset: "4,096 from the default first id on; one from another",
    side: "SC",
    doc:
      "Ranges of 65,536 ids that are those of sandboxes, from ENGINE_SANDBOX_FIRST_HOST_ID on. Each sandbox has one of its " +
      "own until it is deleted, so what the kernel counts by user is its own. The first is shared by sandboxes of versions " +
      "without ranges; with no other range all share it. No one else may have these ids.",
  }),
  sandboxAllowUnlimited: option({
    env: "ENGINE_SANDBOX_ALLOW_UNLIMITED",
    toml: "sandbox.allow_unlimited",
    kind: kinds.bool,
    default: false,
    side: "SC",
    doc:
      "Lets a node run sandboxes without the limits that it cannot enforce, for want of a cgroup controller say. It " +
      "runs none otherwise, and says why.",
  }),
  sandboxLeaseSecs: option({
    env: "ENGINE_SANDBOX_LEASE_SECS",
    toml: "sandbox.lease_secs",
    kind: kinds.integer({ min: 10, max: 3_600 }),
    default: 30,
    side: "S",
    doc:
      "Seconds that a node may be silent before its sandboxes are taken from it, and it stops them: `failed` when they " +
      "are ephemeral; persistent ones wait for it.",
  }),
  sandboxKillGraceSecs: option({
    env: "ENGINE_SANDBOX_KILL_GRACE_SECS",
    toml: "sandbox.kill_grace_secs",
    kind: kinds.integer({ min: 0, max: 60 }),
    default: 3,
    side: "SC",
    doc: "Seconds that a sandbox stands still after its node has lost it, before it is killed.",
  }),
  sandboxActionWaitSecs: option({
    env: "ENGINE_SANDBOX_ACTION_WAIT_SECS",
    toml: "sandbox.action_wait_secs",
    kind: kinds.integer({ min: 0, max: 300 }),
    default: 10,
    side: "S",
    doc:
      "Seconds that start, stop, pause and resume wait until the sandbox is there, and commands and files for one that is " +
      "being made. Then actions answer with the state that it has.",
  }),
  sandboxPendingTimeoutSecs: option({
    env: "ENGINE_SANDBOX_PENDING_TIMEOUT_SECS",
    toml: "sandbox.pending_timeout_secs",
    kind: kinds.integer({ min: 1, max: 86_400 }),
    default: 120,
    side: "S",
    doc: "Seconds that a new sandbox waits for a node with room before it is `failed`.",
  }),
  sandboxMaxPerTenant: option({
    env: "ENGINE_SANDBOX_MAX_PER_TENANT",
    toml: "sandbox.max_per_tenant",
    kind: kinds.integer({ min: 1, max: 100_000 }),
    default: 500,
    side: "S",
    doc: "Sandboxes that one caller has at once, stopped and failed ones among them. More are refused with `rate_limited`.",
  }),
  sandboxMaxWorkspaces: option({
    env: "ENGINE_SANDBOX_MAX_WORKSPACES",
    toml: "sandbox.max_workspaces",
    kind: kinds.integer({ min: 1, max: 100_000 }),
    default: 1_000,
    side: "S",
    doc: "Workspaces that one caller has at once. More are refused with `rate_limited`.",
  }),
  sandboxCreatesPerMinute: option({
    env: "ENGINE_SANDBOX_CREATES_PER_MINUTE",
    toml: "sandbox.creates_per_minute",
    kind: kinds.integer({ min: 1, max: 1_000_000 }),
    default: 600,
    side: "S",
    doc: "Sandboxes that one caller creates in a minute, at each server. More are refused with `rate_limited`.",
  }),
  sandboxCreateBurst: option({
    env: "ENGINE_SANDBOX_CREATE_BURST",
    toml: "sandbox.create_burst",
    kind: kinds.integer({ min: 1, max: 100_000 }),
    default: 100,
    side: "S",
    doc: "Sandboxes that one caller who has created none for a while may create at once.",
  }),
  sandboxCallTimeoutSecs: option({
    env: "ENGINE_SANDBOX_CALL_TIMEOUT_SECS",
    toml: "sandbox.call_timeout_secs",
    kind: kinds.integer({ min: 1, max: 300 }),
    default: 15,
    side: "S",
    doc: "Seconds that the node of a sandbox may take to begin an answer. Then the client gets `sandbox_timeout`.",
  }),
  sandboxEventsKept: option({
    env: "ENGINE_SANDBOX_EVENTS_KEPT",
    toml: "sandbox.events_kept",
    kind: kinds.integer({ min: 1_000, max: 100_000_000 }),
    default: 100_000,
    side: "S",
    doc: "Events that are kept of one sandbox, its log lines among them; the oldest go first.",
  }),
  sandboxEventsBytes: option({
    env: "ENGINE_SANDBOX_EVENTS_BYTES",
    toml: "sandbox.events_bytes",
    kind: kinds.bytes({ min: MIB, max: TIB }),
    default: 64 * MIB,
    side: "S",
    doc:
      "Bytes of events that are kept of one sandbox, its log lines among them, 256 for each event beside its data. What " +
      "would pass it drops the oldest events as it is written, and readers who missed them are told.",
  }),
  sandboxEventsRetentionSecs: option({
    env: "ENGINE_SANDBOX_EVENTS_RETENTION_SECS",
    toml: "sandbox.events_retention_secs",
    kind: kinds.integer({ min: 60, max: 315_360_000 }),
    default: 604_800,
    side: "S",
    doc:
      "Seconds after which events of sandboxes expire; they go ENGINE_ARTIFACT_GC_GRACE_SECS later. Those of a sandbox " +
      "that is deleted go with it.",
  }),
  sandboxAdvertiseUrl: optional({
    env: "ENGINE_SANDBOX_ADVERTISE_URL",
    toml: "sandbox.advertise_url",
    kind: kinds.baseUrl,
    whenUnset: "the address that the server listens on, by the host's name where that is all of them",
    side: "S",
    doc:
      "Where nodes that run sandboxes reach this process. They keep a connection to each process that answers queries, so " +
      "it is not the address of a load balancer.",
  }),
  sandboxEgressRanges: option({
    env: "ENGINE_SANDBOX_EGRESS_RANGES",
    toml: "sandbox.egress_ranges",
    kind: addressRanges,
    default: [],
    side: "SC",
    doc:
      "Addresses that sandboxes may reach by an allowed host beyond the public ones: a package mirror in the own network, " +
      "say.",
  }),
  sandboxRepositoryHosts: option({
    env: "ENGINE_SANDBOX_REPOSITORY_HOSTS",
    toml: "sandbox.repository_hosts",
    kind: hostRules,
    default: ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org"],
    side: "SC",
    doc:
      "Hosts that repositories of sandboxes may be cloned from, beside those that a sandbox is allowed anyway. A sandbox " +
      "reaches them for that step alone.",
  }),
  sandboxPlainHttpRepositories: option({
    env: "ENGINE_SANDBOX_PLAIN_HTTP_REPOSITORIES",
    toml: "sandbox.plain_http_repositories",
    kind: kinds.bool,
    default: false,
    side: "SC",
    doc: "Lets repositories be cloned over HTTP without TLS: whoever is on the way may change them.",
  }),
  sandboxRegistryHosts: option({
    env: "ENGINE_SANDBOX_REGISTRY_HOSTS",
    toml: "sandbox.registry_hosts",
    kind: hostRules,
    default: [
      "deb.debian.org",
      "security.debian.org",
      "pypi.org",
      "files.pythonhosted.org",
      "registry.npmjs.org",
      "index.crates.io",
      "static.crates.io",
    ],
    side: "SC",
    doc:
      "Hosts that packages of sandboxes (`binaries`) are installed from. A sandbox reaches them while that is done, beside " +
      "those that it is allowed anyway. Image builds reach these alone.",
  }),
  sandboxUpstreamProxy: optional({
    env: "ENGINE_SANDBOX_UPSTREAM_PROXY",
    toml: "sandbox.upstream_proxy",
    kind: proxyUrl,
    whenUnset: "sandboxes are let out directly",
    side: "SC",
    secret: true,
    doc:
      "HTTP proxy that everything from sandboxes goes through. It looks names up then, and decides which addresses may be " +
      "reached.",
  }),
  sandboxDebianImage: option({
    env: "ENGINE_SANDBOX_DEBIAN_IMAGE",
    toml: "sandbox.debian_image",
    kind: kinds.bool,
    default: false,
    side: "SC",
    doc:
      "Has a node make the image `debian` with debootstrap, in the background, when it starts and does not have it: a " +
      "Debian of its own, from Debian's servers, in which packages can be installed.",
  }),
  sandboxAgentCommands: option({
    env: "ENGINE_SANDBOX_AGENT_COMMANDS",
    toml: "sandbox.agent_commands",
    kind: commandPairs,
    default: {},
    side: "SC",
    doc:
      "Commands that start the agents of sandboxes, in place of those that are built in: any program that speaks the Agent " +
      "Client Protocol over its standard input and output. Words are parted by spaces.",
  }),
  sandboxProviderUrls: option({
    env: "ENGINE_SANDBOX_PROVIDER_URLS",
    toml: "sandbox.provider_urls",
    kind: providerUrls,
    default: PROVIDER_URLS,
    side: "SC",
    doc:
      "Where the APIs of the models of agents are, by agent provider: `name=https://host/path`, separated by commas. Those " +
      "that are not named stay. Keys of sandboxes are sent there, over `http://` without protection.",
  }),
  sandboxCaFile: optional({
    env: "ENGINE_SANDBOX_CA_FILE",
    toml: "sandbox.ca_file",
    kind: kinds.path,
    whenUnset: "those of the image",
    side: "SC",
    doc: "Certificate authorities, in PEM, that sandboxes with a network trust beyond those of their image.",
  }),
} as const;

/** What the configuration says, with the options of sandboxes. */
export type SandboxConfig = Config & OptionValues<typeof SANDBOX_OPTIONS>;

/** Throws for a configuration that was loaded without the feature. */
export function sandboxConfig(config: Config): SandboxConfig {
  return { ...config, ...valuesOf(SANDBOX_OPTIONS, config) };
}
