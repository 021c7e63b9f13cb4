import type { Clock } from "../../../core/clock.ts";
import { untilAborted } from "../../../core/concurrency.ts";
import { messageOf } from "../../../core/errors.ts";
import { INSTALL_CERTIFICATES } from "../../network/egress/environment.ts";
import { gatewayEnvironment } from "../../network/gateway/environment.ts";
import type { Machine, MachineSpec, Runtime } from "../../runtime/runtime.ts";
import { runCommand } from "../pipeline/run-command.ts";
import { lastSteps, setUpSteps, type SetUpOptions } from "../pipeline/set-up.ts";
import type { SandboxSpec } from "../../contract/spec.ts";
import { volumeKeyIn } from "./volume-keys.ts";
import type { Companions } from "./companions.ts";
import type { SandboxOrder } from "../../contract/control-port.ts";
import type { Recorder } from "../recorder.ts";
import type { SetupHosts } from "./setup-hosts.ts";
import type { SandboxSecrets } from "./secrets.ts";

/** A step of making a sandbox did not succeed; the message is for its owner. */
export class StepFailed extends Error {
  readonly step: string;

  constructor(step: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "StepFailed";
    this.step = step;
  }
}

export type ProvisionOptions = {
  runtime: Runtime;
  order: SandboxOrder;
  recorder: Recorder;
  /** The machine, where an earlier process of the node was in the middle of this. */
  machine: Machine | undefined;
  /** Whether the disk of an earlier machine is here, with all that its scripts did. */
  hasDisk: boolean;
  /** What is left of the lease at this moment. */
  leaseMs: () => number;
  /** A machine is about to be started, and will be killed at that time (ms since 1970). */
  onStart: (deadlineAtMs: number | undefined) => Promise<void>;
  /** A machine is there, before its scripts are run. */
  onMachine: (machine: Machine) => Promise<void>;
  setupHosts: Pick<SetupHosts, "open">;
  /** Has the agent run, and know that it does. */
  startAgent: () => Promise<void>;
  companions: Companions;
  secrets: SandboxSecrets;
  clock: Clock;
  /** Aborted when the sandbox is no longer wanted. */
  signal: AbortSignal;
};

/**
 * Makes a sandbox's machine, step by step, with an event before and after each: `LoadImage` for a built one,
 * `MountVolumes`, `CreateMachine` (or `StartMachine`, from its disk); and, where that was not done on this disk yet,
 * `InstallCertificates` where there are some, `PrepareDisk`, `CloneRepositories`, `InstallBinaries`, `InstallSkills`,
 * `RunScript:<name>` for each script, `RunPreCommands`, `ConfigureAgent`, and `StartAgent` where something is said of the
 * agent. May be called again after the node died in the middle: a command that runs is waited for, and not run twice.
 * Rejects with `StepFailed`, and with the reason of the signal.
 */
export async function provision(options: ProvisionOptions): Promise<void> {
  const { runtime, order, machine, hasDisk, onMachine } = options;
  let made = machine;
  if (made === undefined) {
    if (order.closedEnv !== undefined) await step(options, "OpenVariables", () => cannotOpen(order.closedEnv));
    await options.companions.end(order.sandboxId);
    const { builtImage } = order.spec;
    const release =
      builtImage === undefined ? undefined : await step(options, "LoadImage", () => runtime.loadImage(builtImage));
    try {
      made = await start(options);
    } finally {
      release?.();
    }
    await onMachine(made);
  }
  if (!hasDisk) await setUp(options, made);
}

async function start(options: ProvisionOptions): Promise<Machine> {
  const { runtime, order, hasDisk } = options;
  const volumes = await mountVolumes(options);
  const spec = machineSpec(order, {
    volumes,
    leaseMs: options.leaseMs(),
    env: options.companions.environment(order),
  });
  await options.onStart(spec.deadlineMs === undefined ? undefined : options.clock.nowMs() + spec.deadlineMs);
  if (hasDisk) return await step(options, "StartMachine", () => runtime.restart(spec));
  return await step(options, "CreateMachine", async () => {
    // What is left of one whose scripts did not end is of no use.
    await runtime.remove(order.sandboxId);
    return await runtime.create(spec);
  });
}

/** What is done once on each disk. */
async function setUp(options: ProvisionOptions, machine: Machine): Promise<void> {
  const { order, companions } = options;
  const { spec } = order;
  const ports = { ...options, machine, spec, sources: companions.sources };
  const certificates = await companions.certificates(order, options.secrets);
  if (certificates !== undefined) {
    const input = Buffer.from(certificates);
    const install = {
      key: "certificates",
      argv: CERTIFICATES,
      user: "root",
      timeoutMs: CERTIFICATES_MS,
      input,
    } as const;
    await step(options, "InstallCertificates", () => runCommand(ports, install));
  }
  const setUpOptions: SetUpOptions = { ...ports, letOut: (name, hosts) => options.setupHosts.open(name, hosts) };
  for (const { name, run } of setUpSteps(setUpOptions)) await step(options, name, run);
  for (const [i, { name, script, user, timeoutSecs }] of spec.provisioningScripts.entries()) {
    const command = { key: String(i), argv: ["/bin/sh", "-c", script], user, timeoutMs: timeoutSecs * 1_000 };
    await step(options, `RunScript:${name}`, () => runCommand(ports, command));
  }
  for (const { name, run } of lastSteps(setUpOptions)) await step(options, name, run);
  if (spec.agentConfig !== undefined) {
    await step(options, "StartAgent", () => untilAborted(options.startAgent(), options.signal));
  }
}

async function step<T>({ recorder, signal }: ProvisionOptions, name: string, run: () => Promise<T>): Promise<T> {
  recorder.event("provisioning_step", { step: name, status: "in_progress" });
  try {
    signal.throwIfAborted();
    const result = await run();
    recorder.event("provisioning_step", { step: name, status: "completed" });
    return result;
  } catch (error) {
    if (signal.aborted) throw error;
    recorder.event("provisioning_step", { step: name, status: "failed" });
    throw new StepFailed(name, messageOf(error), error);
  }
}

/** A machine without them would be another one than was asked for. */
function cannotOpen(why: string | undefined): Promise<never> {
  return Promise.reject(new Error(`its environment variables cannot be opened: ${why}`));
}

async function mountVolumes(options: ProvisionOptions): Promise<MachineSpec["volumes"]> {
  const { runtime, order } = options;
  if (order.spec.volumes.length === 0) return [];
  return await step(options, "MountVolumes", () =>
    Promise.all(
      order.spec.volumes.map(async ({ name, mountPath, readOnly, sizeMb }) => {
        const key = volumeKeyIn(order, name);
        if (key === undefined) throw new Error(`the volume ${name} is not known any more`);
        const path = await runtime.volumes.open(key, sizeMb);
        return { name, mountPath, readOnly, sizeMb, path };
      }),
    ),
  );
}

function machineSpec(
  { sandboxId, spec }: SandboxOrder,
  { volumes, leaseMs, env }: Pick<MachineSpec, "volumes" | "leaseMs" | "env">,
): MachineSpec {
  return {
    id: sandboxId,
    image: spec.builtImage?.id ?? spec.image,
    limits: spec.limits,
    network: { enabled: spec.network.enabled },
    volumes,
    hostname: hostnameOf(sandboxId, spec),
    env: { ...env, ...spec.builtImage?.environment, ...spec.envVars, ...gatewayEnvironment(spec) },
    keepsDisk: spec.persistence === "persistent",
    leaseMs,
    deadlineMs: spec.timeoutSecs === undefined ? undefined : spec.timeoutSecs * 1_000,
  };
}

const HOSTNAME_CHARS = 63;

/** The sandbox's name, as far as a host may have it (RFC 1123). */
function hostnameOf(sandboxId: string, { name = "" }: SandboxSpec): string {
  const text = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  const host = text.slice(0, HOSTNAME_CHARS).replaceAll(/^-+|-+$/g, "");
  return host === "" ? `sandbox-${sandboxId.slice(-12)}` : host;
}

const CERTIFICATES = ["/bin/sh", "-c", INSTALL_CERTIFICATES];
const CERTIFICATES_MS = 60_000;
