import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { untilAborted } from "../../core/concurrency.ts";
import { messageOf } from "../../core/errors.ts";
import { INSTALL_CERTIFICATES } from "../egress/environment.ts";
import type { Exec, ExecOutput, Machine, MachineSpec, Runtime } from "../runtime/runtime.ts";
import type { ProvisioningScript, SandboxSpec } from "../spec.ts";
import type { Companions } from "./companions.ts";
import type { SandboxOrder } from "./control-port.ts";
import { Lines } from "./lines.ts";
import type { Recorder } from "./recorder.ts";

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
  companions: Companions;
  clock: Clock;
  /** Aborted when the sandbox is no longer wanted. */
  signal: AbortSignal;
};

/**
 * Makes a sandbox's machine, step by step, with an event before and after each: `MountVolumes`, `CreateMachine` (or
 * `StartMachine`, from its disk), `InstallCertificates` where the operator has some, and `RunScript:<name>` for each script where they have not all run on this disk.
 * May be called again after the node died in the middle: a script that runs is waited for, and not run twice. Rejects
 * with `StepFailed`, and with the reason of the signal.
 */
export async function provision(options: ProvisionOptions): Promise<void> {
  const { runtime, order, machine, hasDisk, onMachine } = options;
  let made = machine;
  if (made === undefined) {
    await options.companions.end(order.sandboxId);
    const volumes = await mountVolumes(options);
    const spec = machineSpec(order, {
      volumes,
      leaseMs: options.leaseMs(),
      env: options.companions.environment(order),
    });
    await options.onStart(spec.deadlineMs === undefined ? undefined : options.clock.nowMs() + spec.deadlineMs);
    if (hasDisk) made = await step(options, "StartMachine", () => runtime.restart(spec));
    else {
      made = await step(options, "CreateMachine", async () => {
        // What is left of one whose scripts did not end is of no use.
        await runtime.remove(order.sandboxId);
        return await runtime.create(spec);
      });
    }
    await onMachine(made);
  }
  if (hasDisk) return;
  const { certificates } = options.companions;
  if (certificates !== undefined && order.spec.network.enabled) {
    const [up, input] = [made, Buffer.from(certificates)];
    await step(options, "InstallCertificates", () =>
      runScript(options, up, { ...CERTIFICATES, id: "certificates", input }),
    );
  }
  for (const [i, script] of order.spec.provisioningScripts.entries()) {
    const up = made;
    await step(options, `RunScript:${script.name}`, () => runScript(options, up, { ...script, id: String(i) }));
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

async function mountVolumes(options: ProvisionOptions): Promise<MachineSpec["volumes"]> {
  const { runtime, order } = options;
  if (order.spec.volumes.length === 0) return [];
  return await step(options, "MountVolumes", () =>
    Promise.all(
      order.spec.volumes.map(async ({ name, mountPath, readOnly, sizeMb }) => {
        const path = await runtime.volumes.open(volumeKey(order.tenant, name), sizeMb);
        return { name, mountPath, readOnly, sizeMb, path };
      }),
    ),
  );
}

/** The name of a tenant's volume on a node: any text, as a file name. */
export function volumeKey(tenant: string, name: string): string {
  return createHash("sha256")
    .update(JSON.stringify([tenant, name]))
    .digest("hex")
    .slice(0, 32);
}

function machineSpec(
  { sandboxId, spec }: SandboxOrder,
  { volumes, leaseMs, env }: Pick<MachineSpec, "volumes" | "leaseMs" | "env">,
): MachineSpec {
  return {
    id: sandboxId,
    image: spec.image,
    limits: spec.limits,
    network: { enabled: spec.network.enabled },
    volumes,
    hostname: hostnameOf(sandboxId, spec),
    env: { ...env, ...spec.envVars },
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

const CERTIFICATES = { script: INSTALL_CERTIFICATES, user: "root", timeoutSecs: 60 } as const;

type Script = Omit<ProvisioningScript, "name"> & { id: string; input?: Uint8Array };

async function runScript(
  { order, recorder, signal }: ProvisionOptions,
  machine: Machine,
  script: Script,
): Promise<void> {
  const ended = machine.ended.then((end) => {
    throw new Error(end.cause === "died" ? `the machine ended: ${end.reason}` : `the machine ended (${end.cause})`);
  });
  const run = async (): Promise<void> => {
    const exec = await machine.exec({
      // The same whenever this is called for this machine: a script that was begun is taken up again.
      id: scriptExecId(order.sandboxId, script.id),
      argv: ["/bin/sh", "-c", script.script],
      cwd: undefined,
      env: {},
      user: script.user,
      timeoutMs: script.timeoutSecs * 1_000,
      tty: undefined,
    });
    if (script.input !== undefined) await exec.write(script.input);
    await exec.endInput();
    await follow(exec, recorder);
  };
  await untilAborted(Promise.race([run(), ended]), signal);
}

/** Output becomes log lines. Rejects unless the command succeeds. */
async function follow(exec: Exec, recorder: Recorder): Promise<void> {
  let lastLine = "";
  const linesOf = (stream: "stdout" | "stderr") =>
    new Lines((line) => {
      if (line.trim() !== "") lastLine = line;
      recorder.event("log_line", { line, stream });
    });
  const lines = { stdout: linesOf("stdout"), stderr: linesOf("stderr") };
  for await (const output of exec.output()) {
    if (output.type === "skipped") continue;
    if (output.type !== "exit") {
      lines[output.type].push(output.bytes);
      continue;
    }
    lines.stdout.end();
    lines.stderr.end();
    const problem = problemOf(output);
    if (problem === undefined) return;
    throw new Error(lastLine === "" ? problem : `${problem}; its last line: ${lastLine.slice(0, 500)}`);
  }
  throw new Error("its end was not seen");
}

function problemOf({ exitCode, signal, timedOut }: Extract<ExecOutput, { type: "exit" }>): string | undefined {
  if (timedOut) return "it took too long, and was killed";
  if (exitCode === 0) return undefined;
  return exitCode === undefined ? `it was killed by ${signal ?? "a signal"}` : `it ended with exit code ${exitCode}`;
}

function scriptExecId(sandboxId: string, script: string): string {
  const bytes = createHash("sha256").update(`${sandboxId}/${script}`).digest().subarray(0, 16);
  // RFC 9562: version 8, whose bits are the maker's own.
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
