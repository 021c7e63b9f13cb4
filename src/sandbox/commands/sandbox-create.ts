import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { sleep } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { callTarget, fieldText, type ApiFlags, type Json } from "../../client/api.ts";
import type { Target } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { sandboxPath } from "./sandbox-path.ts";

export type CreateFlags = ApiFlags & {
  provider: string;
  name?: string;
  image?: string;
  cpus?: string;
  memory?: string;
  disk?: string;
  processes?: string;
  persistent?: true;
  timeout?: string;
  env?: string[];
  label?: string[];
  allowHost?: string[];
  credential?: string[];
  volume?: string[];
  port?: string[];
  script?: string[];
  detach?: true;
};

const POLL_MS = 100;

/** The body of `POST /api/v1/sandboxes`; the server judges what it says. */
export async function requestFrom(flags: CreateFlags): Promise<Json> {
  const { provider, name, image, persistent, timeout, env, label, allowHost, credential, volume, port, script } = flags;
  const limits = {
    ...number("cpu_cores", flags.cpus, "--cpus"),
    ...number("memory_mb", flags.memory, "--memory"),
    ...number("disk_mb", flags.disk, "--disk"),
    ...number("max_processes", flags.processes, "--processes"),
  };
  return {
    agent_provider: provider,
    ...(name !== undefined && { name }),
    ...(image !== undefined && { image }),
    ...(Object.keys(limits).length > 0 && { resource_limits: limits }),
    ...(persistent && { persistence: "persistent" }),
    ...number("timeout_secs", timeout, "--timeout"),
    ...(env && { env_vars: pairsIn(env, "--env") }),
    ...(label && { labels: pairsIn(label, "--label") }),
    ...(allowHost && { network: { enabled: true, allowed_hosts: allowHost } }),
    ...(credential && { credentials: credential.map(credentialIn) }),
    ...(volume && { volumes: volume.map(volumeIn) }),
    ...(port && { ports: port.map((text) => number("port", text, "--port")) }),
    ...(script && { provisioning_scripts: await Promise.all(script.map(scriptIn)) }),
  };
}

/** Waits until it runs; throws when it fails, saying why. */
export async function waitUntilUp(context: CliContext, target: Target, id: string): Promise<Json> {
  for (;;) {
    const sandbox = await callTarget(context, target, "GET", sandboxPath(id));
    const { state } = sandbox;
    if (state === "failed") {
      throw new CliError(`sandbox ${id} failed: ${fieldText(sandbox["reason"])}`);
    }
    if (state !== "pending" && state !== "creating") return sandbox;
    await sleep(context.deps.clock, POLL_MS);
  }
}

/** `name=value` texts as an object. */
export function pairsIn(texts: readonly string[], flag: string): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf("=");
      if (at <= 0) throw new CliError(`${flag} takes name=value, not ${JSON.stringify(text)}`, EXIT.usage);
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}

export function number(name: string, text: string | undefined, flag: string): Record<string, number> {
  if (text === undefined) return {};
  if (!/^\d+(\.\d+)?$/.test(text))
    throw new CliError(`${flag} takes a number, not ${JSON.stringify(text)}`, EXIT.usage);
  return { [name]: Number(text) };
}

function credentialIn(text: string): Json {
  const { id, variable, hosts } = /^(?<id>[^:@]+)(?::(?<variable>[^@]+))?(?:@(?<hosts>.+))?$/.exec(text)?.groups ?? {};
  if (id === undefined)
    throw new CliError(
      `--credential takes id, id:VARIABLE or id:VARIABLE@host, not ${JSON.stringify(text)}`,
      EXIT.usage,
    );
  return {
    credential_id: id,
    ...(variable !== undefined && { env_var: variable }),
    ...(hosts !== undefined && { hosts: hosts.split(",") }),
  };
}

function volumeIn(text: string): Json {
  const match = /^([^:]+):(\/[^:]*)(:ro)?$/.exec(text);
  if (match === null)
    throw new CliError(`--volume takes name:/path or name:/path:ro, not ${JSON.stringify(text)}`, EXIT.usage);
  return { name: match[1], mount_path: match[2], read_only: match[3] !== undefined };
}

async function scriptIn(path: string): Promise<Json> {
  try {
    return { name: basename(path), script: await readFile(path, "utf8") };
  } catch (error) {
    throw new CliError(`the script cannot be read: ${messageOf(error)}`, EXIT.failed, { cause: error });
  }
}
