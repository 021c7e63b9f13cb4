import { createHash } from "node:crypto";
import { mkdir, readFile, realpath } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Random } from "../../core/random.ts";
import type { JobPort } from "../../fabric/handler.ts";
import type { SandboxConfig } from "../contract/options.ts";
import { AGENTS } from "../contract/agents/providers.ts";
import { Egress } from "../network/egress/egress.ts";
import { imageBuildHandler, type ImageBuilderOptions } from "./images/builder.ts";
import { ImageBuilds } from "./images/image-builds.ts";
import type { ImagePort } from "../contract/images/image-port.ts";
import type { NodeCallHandler } from "../contract/link/calls.ts";
import { DEBIAN_IMAGE } from "../contract/images/image.ts";
import { defaultRanges } from "../runtime/id-ranges.ts";
import { LazyRuntime } from "../runtime/lazy-runtime.ts";
import { sweepMounts } from "../runtime/mounts.ts";
import { findLauncher, openRuntime } from "../runtime/open-runtime.ts";
import { RuntimeError, type Runtime, type RuntimeAbilities } from "../runtime/runtime.ts";
import { DEFAULT_DISK_MB } from "../contract/spec.ts";
import { nodeCapacity } from "./capacity.ts";
import type { ControlPort } from "../contract/control-port.ts";
import { lockFolder } from "./folder-lock.ts";
import { LeasedFiles, readJson, writeJson } from "./leased-files.ts";
import { nodeCallHandler } from "./node-calls.ts";
import { SandboxNode } from "./node.ts";
import { SandboxEnvironments } from "./reconciler/environment.ts";

const DAY_MS = 86_400_000;

const MIB = 1024 * 1024;
/** Compilers start many. */
const BUILD_PROCESSES = 4_096;

export type OpenNodeOptions = {
  config: SandboxConfig;
  /**
   * How the control plane calls this node, the same from start to start. By default a name that the node gave itself.
   * `home`: the folder of the node.
   */
  identify?: (home: string, name: string) => Promise<string>;
  jobsOf: (nodeId: string) => JobPort;
  controlOf: (nodeId: string) => ControlPort;
  images: ImagePort;
  /**
   * `at once`: for a machine that is there for sandboxes: it finds out now what it cannot do, and prepares machines.
   * `when needed`: nothing is done to this computer before the first sandbox comes.
   */
  begins: "at once" | "when needed";
  onGateways?: (gateways: readonly string[]) => void;
  clock: Clock;
  random: Random;
  newId: IdSource;
  log: Log;
};

export type OpenedNode = {
  node: SandboxNode;
  nodeId: string;
  /** Answers the calls of the control plane. */
  calls: NodeCallHandler;
  /** Lets go of this computer; machines run on. After `node.stop`. */
  close(): Promise<void>;
};

/** This computer runs no sandboxes; the message says why. */
export class NodeUnable extends Error {}

/** A node in the folder that the configuration names. Rejects with `NodeUnable`. */
export async function openSandboxNode(options: OpenNodeOptions): Promise<OpenedNode> {
  const { config, clock, log } = options;
  const home = config.sandboxHome;
  const name = await runtimeHere(options);
  await mkdir(join(home, "held"), { recursive: true, mode: 0o700 });
  const lock = await lockFolder(home);
  if (lock === undefined) throw new NodeUnable(`another process has ${home}`);
  let made: Runtime | undefined;
  const open = async () => (made = await openAble(options, home));
  const close = async (): Promise<void> => {
    if (made !== undefined) await closeRuntime(made, home);
    lock.close();
  };
  try {
    const runtime = options.begins === "at once" ? await open() : await LazyRuntime.prepare({ name, home, open });
    const description = await describe(config, name);
    const nodeId = await (options.identify?.(home, description.name) ?? ownId(home, options.newId));
    const egress = await openEgress(config, { clock, log });
    const jobs = options.jobsOf(nodeId);
    const environments: SandboxEnvironments = new SandboxEnvironments({
      runtime,
      egress,
      providerUrls: config.sandboxProviderUrls,
      find: (sandboxId) => node.reconcilerOf(sandboxId),
      clock,
      log,
    });
    const { sandboxVolumeDays: days } = config;
    const node: SandboxNode = new SandboxNode({
      ...options,
      runtime,
      jobs,
      builds: imageBuildsOf(options, { runtime, egress, jobs }),
      control: options.controlOf(nodeId),
      files: new LeasedFiles(join(home, "held")),
      companions: environments,
      agentCommands: agentCommandsOf(config),
      node: description,
      warmsAtOnce: options.begins === "at once",
      killGraceMs: config.sandboxKillGraceSecs * 1_000,
      volumesKeptMs: days === 0 ? undefined : days * DAY_MS,
    });
    if (config.sandboxDebianImage) void prepareDebian(runtime, log);
    return { node, nodeId, calls: nodeCallHandler(node, environments, { clock, log }), close };
  } catch (error) {
    await close();
    throw error instanceof RuntimeError && error.code === "unable" ? new NodeUnable(error.message) : error;
  }
}

/** Throws `NodeUnable` for a provider that there is not. */
function agentCommandsOf({
  sandboxAgentCommands: commands,
}: SandboxConfig): Readonly<Record<string, readonly string[]>> {
  for (const provider of Object.keys(commands)) {
    if (AGENTS.has(provider)) continue;
    throw new NodeUnable(`ENGINE_SANDBOX_AGENT_COMMANDS: there is no agent provider ${provider}`);
  }
  return commands;
}

function imageBuildsOf(
  options: OpenNodeOptions,
  { jobs, ...ports }: { jobs: JobPort } & Pick<ImageBuilderOptions, "runtime" | "egress">,
): ImageBuilds {
  const { config } = options;
  const handler = imageBuildHandler({
    ...options,
    ...ports,
    limits: {
      cpuCores: config.sandboxImageBuildCpus,
      memoryMb: Math.floor(config.sandboxImageBuildMemoryBytes / MIB),
      diskMb: Math.floor(config.sandboxImageBuildDiskBytes / MIB),
      maxProcesses: BUILD_PROCESSES,
    },
    registryHosts: config.sandboxRegistryHosts,
    timeoutMs: config.sandboxImageBuildTimeoutSecs * 1_000,
  });
  return new ImageBuilds({ ...options, jobs, handler, slots: config.sandboxImageBuilds });
}

/** Never rejects: without it the node has its other images. */
async function prepareDebian(runtime: Runtime, log: Log): Promise<void> {
  try {
    await runtime.prepareImage(DEBIAN_IMAGE);
    log.info({ image: DEBIAN_IMAGE }, "the image is there");
  } catch (error) {
    log.warn({ image: DEBIAN_IMAGE, reason: messageOf(error) }, "an image could not be made");
  }
}

/** What would make machines here; nothing is opened for it. */
async function runtimeHere({ config }: OpenNodeOptions): Promise<Runtime["name"]> {
  const { sandboxRuntime: runtime } = config;
  if (runtime === "off") throw new NodeUnable("sandboxes are switched off");
  try {
    return (await findLauncher({ runtime })).name;
  } catch (error) {
    if (error instanceof RuntimeError) throw new NodeUnable(error.message, { cause: error });
    throw error;
  }
}

const SHARED_IDS =
  "all sandboxes of this node have the same ids of the host, so each can use up what the kernel grants one user; " +
  "ENGINE_SANDBOX_ID_RANGES gives each its own";

/** The runtime, if it can do what sandboxes need. Rejects with `RuntimeError` `unable`. */
async function openAble({ config, images, clock, newId: ids, log }: OpenNodeOptions, home: string): Promise<Runtime> {
  const { sandboxRuntime: runtime, sandboxFirstHostId: firstHostId, sandboxKillGraceSecs } = config;
  if (runtime === "off") throw new RuntimeError("unable", "sandboxes are switched off");
  const idRanges = config.sandboxIdRanges ?? defaultRanges(firstHostId);
  if (idRanges === 1) log.warn({ firstHostId }, SHARED_IDS);
  const opened = await openRuntime({
    home,
    clock,
    ids,
    log,
    runtime,
    firstHostId,
    idRanges,
    graceMs: sandboxKillGraceSecs * 1_000,
    warm: { machines: config.sandboxWarmPool, diskMb: DEFAULT_DISK_MB },
    cgroupRoot: await cgroupRootOf(home),
    builtImages: { read: (layer, part) => images.read(layer, part), cacheBytes: config.sandboxImageCacheBytes },
  });
  const missing = missingLimits(opened.abilities);
  if (missing.length === 0) return opened;
  if (config.sandboxAllowUnlimited) {
    log.warn({ missing }, "sandboxes run without limits that cannot be enforced here, as configured");
    return opened;
  }
  await opened.close();
  const why = `limits cannot be enforced here (${missing.join("; ")}); ENGINE_SANDBOX_ALLOW_UNLIMITED runs them all the same`;
  throw new RuntimeError("unable", why);
}

/** Each folder has cgroups of its own: whoever opens it removes those that it does not know. */
export async function cgroupRootOf(home: string): Promise<string> {
  const hash = createHash("sha256").update(await realpath(home));
  return `engine-${hash.digest("hex").slice(0, 12)}`;
}

/** Without machines nothing stays mounted: the folder may be removed like any other. */
async function closeRuntime(runtime: Runtime, home: string): Promise<void> {
  // What is being put away at this moment is gone when it is closed.
  await runtime.close();
  if ((await runtime.list()).length === 0) await sweepMounts(home);
}

function missingLimits(abilities: RuntimeAbilities): string[] {
  return Object.entries(abilities).flatMap(([limit, can]) => (can === true ? [] : [`${limit}: ${can}`]));
}

async function openEgress(config: SandboxConfig, ports: { clock: Clock; log: Log }): Promise<Egress> {
  const { sandboxEgressRanges: allowedRanges, sandboxUpstreamProxy, sandboxCaFile } = config;
  return new Egress({
    ...ports,
    allowedRanges,
    upstream: sandboxUpstreamProxy === undefined ? undefined : new URL(sandboxUpstreamProxy),
    certificates: sandboxCaFile === undefined ? undefined : await certificatesIn(sandboxCaFile),
    sources: {
      repositoryHosts: config.sandboxRepositoryHosts,
      plainHttp: config.sandboxPlainHttpRepositories,
      registryHosts: config.sandboxRegistryHosts,
    },
  });
}

async function certificatesIn(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new NodeUnable(`ENGINE_SANDBOX_CA_FILE: ${messageOf(error)}`, { cause: error });
  }
}

async function describe(config: SandboxConfig, runtime: string) {
  return {
    name: config.sandboxNodeName ?? hostname(),
    runtime,
    labels: config.sandboxNodeLabels,
    capacity: await nodeCapacity(config.sandboxHome, {
      cpus: config.sandboxCpus,
      memoryBytes: config.sandboxMemoryBytes,
      diskBytes: config.sandboxDiskBytes,
      sandboxes: config.sandboxMaxPerNode,
    }),
    bootId: (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim(),
  };
}

const identitySchema = z.object({ id: z.uuid() });

/** The name that the node in this folder gave itself when it first began. */
async function ownId(home: string, newId: IdSource): Promise<string> {
  const path = join(home, "node.json");
  const known = await readJson(path, identitySchema);
  if (known !== undefined) return known.id;
  const id = newId();
  await writeJson(path, { id });
  return id;
}
