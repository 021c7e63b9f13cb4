import { isIP } from "node:net";
import { z } from "zod";
import { AGENT_PROVIDERS } from "../../contract/agents/providers.ts";
import { ENV_NAME, text } from "../../contract/text-fields.ts";
import { EngineError } from "../../../core/errors.ts";
import { agentConfigField, fromAgentConfig, toAgentConfig } from "./agent-config.ts";
import { fromSubagents, subagentsField, toSubagents } from "./subagents.ts";
import { credentialUses, fromCredentialUses, toCredentialUses } from "./credential-fields.ts";
import { canonicalRule } from "../../contract/host-names.ts";
import { fromSetup, isNetworkOn, setupFields, toSetup } from "./setup-fields.ts";
import { fromSkills, skillsField, toSkills } from "./skill-fields.ts";
import { PROXY_PORT, DEFAULT_DISK_MB, PERSISTENCE, type SandboxSpec } from "../../contract/spec.ts";

/** The body of `POST /api/v1/sandboxes`: every field, its bounds, and its value where the client gives none. */

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const NAME_RULE = "accepted are up to 63 letters, digits, `.`, `_` and `-`, a letter or digit first";
const LABEL_NAME = /^[A-Za-z0-9][\w./-]{0,62}$/;
const LABEL_CHARS = 255;
const VALUE_CHARS = 32_768;
const ENV_BYTES = 131_072;
const SCRIPT_CHARS = 262_144;
const PATH_CHARS = 1_024;
const DAY_SECS = 86_400;
const SCRIPT_SECS = 600;
const MAX = { labels: 64, envVars: 256, hosts: 256, dnsServers: 4, volumes: 8, ports: 16, scripts: 32 } as const;
/** Folders of the machine itself; and the root, under everything that the sandbox is. */
const NO_MOUNTS = /^\/(?:proc|sys|dev|run|tmp|etc|usr|bin|sbin|lib|lib64)(?:\/|$)/;

const name = z.string().regex(NAME, NAME_RULE);

/** Whether labels may be so: also where they are searched for. */
export function isLabel([label, value]: readonly [string, string]): boolean {
  return LABEL_NAME.test(label) && value.length <= LABEL_CHARS && value.isWellFormed() && !/[\p{Cc},]/u.test(value);
}

export const labelRecord = z
  .record(z.string(), z.string())
  .refine((all) => Object.keys(all).length <= MAX.labels, `accepted are at most ${MAX.labels} labels`)
  .refine(
    (all) => Object.entries(all).every(isLabel),
    "accepted are names of up to 63 letters, digits, `_`, `.`, `/` and `-`, and values of up to 255 characters without " +
      "commas and control characters",
  );
const labels = labelRecord
  .default({})
  .describe("For finding sandboxes. One called `node/NAME` also has it placed on a node with that value of NAME.");

const resourceLimits = z
  .strictObject({
    cpu_cores: z.number().min(0.1).max(256).default(1).describe("Processors; a fraction is a share of one."),
    memory_mb: z
      .int()
      .min(64)
      .max(1_048_576)
      .default(1_024)
      .describe("MiB, of which no node promises more than it has."),
    disk_mb: z
      .int()
      .min(64)
      .max(1_048_576)
      .default(DEFAULT_DISK_MB)
      .describe("MiB of the disk on which all changes lie."),
    max_processes: z.int().min(16).max(32_768).default(512).describe("Processes and threads at once."),
  })
  .prefault({});

const network = z
  .strictObject({
    enabled: z
      .boolean()
      .optional()
      .describe(
        "Whether there is a proxy to the outside; there is no other way. By default where something is cloned or installed.",
      ),
    allowed_hosts: z
      .array(z.string().transform(toRule))
      .max(MAX.hosts)
      .default([])
      .describe("Names that the proxy connects to: exact, or `*.example.com` for those below one. None by default."),
    dns_servers: z
      .array(z.string().refine((address) => isIP(address) !== 0, "accepted are IP addresses"))
      .max(MAX.dnsServers)
      .default([])
      .describe("Name servers that the proxy asks; those of the node by default."),
  })
  .prefault({});

const envVars = z
  .record(z.string(), text(VALUE_CHARS))
  .default({})
  .refine((all) => Object.keys(all).length <= MAX.envVars, `accepted are at most ${MAX.envVars} variables`)
  .refine((all) => Object.keys(all).every((one) => ENV_NAME.test(one)), "a name is not one of an environment variable")
  .refine((all) => Buffer.byteLength(JSON.stringify(all)) <= ENV_BYTES, `accepted are ${ENV_BYTES} bytes in all`)
  .describe("Of every command. Only the maker of the sandbox and admins are shown them; logs never have them.");

const volumes = z
  .array(
    z.strictObject({
      name: name.describe("Of the tenant's: the same name is the same storage."),
      mount_path: z
        .string()
        .max(PATH_CHARS)
        .refine(isMountPath, "accepted are absolute paths without `.` and `..`, outside the folders of the system"),
      read_only: z.boolean().default(false),
      size_mb: z.int().min(16).max(1_048_576).default(1_024).describe("MiB, where the volume is made by this."),
    }),
  )
  .max(MAX.volumes)
  .default([])
  .refine((all) => isDistinct(all.map((volume) => volume.name)), "two volumes have the same name")
  .refine((all) => isDistinct(all.map((volume) => volume.mount_path)), "two volumes have the same mount_path")
  .describe("Named storage that outlives sandboxes. It lies on one node, and so do the sandboxes that use it.");

const ports = z
  .array(
    z.strictObject({
      port: z
        .int()
        .min(1)
        .max(65_535)
        .refine((port) => port !== PROXY_PORT, `${PROXY_PORT} is the proxy's`),
      name: name.nullish().transform((value) => value ?? undefined),
    }),
  )
  .max(MAX.ports)
  .default([])
  .refine((all) => isDistinct(all.map(({ port }) => port)), "the same port is there twice")
  .refine((all) => isDistinct(all.flatMap((port) => port.name ?? [])), "two ports have the same name")
  .describe("TCP ports inside on which something speaks HTTP: answered below `endpoint_url`.");

const script = z.strictObject({
  name: name.optional().describe("`script-1` for the first, and so on, by default."),
  script: text(SCRIPT_CHARS).min(1),
  user: z.enum(["root", "agent"]).optional().describe("`root` of the sandbox by default."),
  timeout_secs: z.int().min(1).max(DAY_SECS).optional().describe(`${SCRIPT_SECS} by default.`),
});

const provisioningScripts = z
  .array(
    z.union([text(SCRIPT_CHARS).min(1), script], {
      error: `accepted are a text, or {script, name, user: "root" or "agent", timeout_secs: 1 to ${DAY_SECS}}`,
    }),
  )
  .max(MAX.scripts)
  .default([])
  .describe("Run by `sh -c`, one after the other, when the sandbox is made; one that fails, fails the sandbox.");

export const createFields = z.strictObject({
  agent_provider: z.string().describe(`One of ${AGENT_PROVIDERS.join(", ")}.`),
  name: name.nullish().describe("No other sandbox of the tenant has it."),
  image: text(LABEL_CHARS).min(1).nullish().describe("By name; the node's own by default."),
  resource_limits: resourceLimits,
  persistence: z
    .enum(PERSISTENCE)
    .default("ephemeral")
    .describe("`ephemeral`: its disk goes when it stops. `persistent`: the disk stays until it is deleted."),
  network,
  env_vars: envVars,
  volumes,
  ports,
  ...setupFields,
  skills: skillsField,
  subagents: subagentsField,
  credentials: credentialUses,
  provisioning_scripts: provisioningScripts,
  labels,
  timeout_secs: z
    .int()
    .min(1)
    .max(366 * DAY_SECS)
    .nullish()
    .describe("Stopped after that, from each start on."),
  agent_config: agentConfigField,
});

/** Checks all but the agent provider: see `checkProvider`. */
export const createRequest = createFields.transform(toSpec);

/** Throws `agent_provider_not_found`. */
export function checkProvider({ agentProvider }: Pick<SandboxSpec, "agentProvider">): void {
  if (AGENT_PROVIDERS.some((one) => one === agentProvider)) return;
  throw new EngineError(
    "agent_provider_not_found",
    `there is no such agent provider; there are ${AGENT_PROVIDERS.join(", ")}`,
  );
}

function toSpec(body: z.output<typeof createFields>, context: z.RefinementCtx): SandboxSpec {
  const {
    cpu_cores: cpuCores,
    memory_mb: memoryMb,
    disk_mb: diskMb,
    max_processes: maxProcesses,
  } = body.resource_limits;
  return {
    agentProvider: body.agent_provider,
    name: body.name ?? undefined,
    image: body.image ?? undefined,
    limits: { cpuCores, memoryMb, diskMb, maxProcesses },
    persistence: body.persistence,
    ...toSetup(body, context),
    skills: toSkills(body.skills, context),
    subagents: toSubagents(body.subagents, body.agent_provider, context),
    credentials: toCredentialUses(body, context),
    network: {
      enabled: isNetworkOn(body.network, body, context),
      allowedHosts: [...new Set(body.network.allowed_hosts)],
      dnsServers: [...new Set(body.network.dns_servers)],
    },
    envVars: body.env_vars,
    volumes: body.volumes.map((volume) => ({
      name: volume.name,
      mountPath: volume.mount_path,
      readOnly: volume.read_only,
      sizeMb: volume.size_mb,
    })),
    ports: body.ports,
    provisioningScripts: body.provisioning_scripts.map(toScript),
    labels: body.labels,
    timeoutSecs: body.timeout_secs ?? undefined,
    agentConfig: toAgentConfig(
      body.agent_config,
      { agentProvider: body.agent_provider, envVars: body.env_vars },
      context,
    ),
  };
}

function toScript(given: string | z.output<typeof script>, i: number): SandboxSpec["provisioningScripts"][number] {
  const { script: lines, ...rest } = typeof given === "string" ? { script: given } : given;
  const { name: called = `script-${i + 1}`, user = "root", timeout_secs: timeoutSecs = SCRIPT_SECS } = { ...rest };
  return { name: called, script: lines, user, timeoutSecs };
}

/** The request that makes the same sandbox, with every value. */
export function toRequest(spec: SandboxSpec): Record<string, unknown> {
  return {
    agent_provider: spec.agentProvider,
    name: spec.name ?? null,
    image: spec.image ?? null,
    resource_limits: {
      cpu_cores: spec.limits.cpuCores,
      memory_mb: spec.limits.memoryMb,
      disk_mb: spec.limits.diskMb,
      max_processes: spec.limits.maxProcesses,
    },
    persistence: spec.persistence,
    network: {
      enabled: spec.network.enabled,
      allowed_hosts: spec.network.allowedHosts,
      dns_servers: spec.network.dnsServers,
    },
    env_vars: spec.envVars,
    volumes: spec.volumes.map((volume) => ({
      name: volume.name,
      mount_path: volume.mountPath,
      read_only: volume.readOnly,
      size_mb: volume.sizeMb,
    })),
    ports: spec.ports.map((port) => ({ port: port.port, name: port.name ?? null })),
    ...fromSetup(spec),
    skills: fromSkills(spec.skills),
    subagents: fromSubagents(spec.subagents),
    credentials: fromCredentialUses(spec.credentials),
    provisioning_scripts: spec.provisioningScripts.map(({ timeoutSecs, ...rest }) => ({
      ...rest,
      timeout_secs: timeoutSecs,
    })),
    labels: spec.labels,
    timeout_secs: spec.timeoutSecs ?? null,
    agent_config: fromAgentConfig(spec.agentConfig),
  };
}

function toRule(host: string, context: z.RefinementCtx): string {
  const rule = canonicalRule(host);
  if (rule !== undefined) return rule;
  context.addIssue({ code: "custom", message: "accepted are names of hosts, and `*.` before one" });
  return z.NEVER;
}

function isMountPath(path: string): boolean {
  const [root, ...segments] = path.split("/");
  const isPlain = segments.every((segment) => segment !== "" && segment !== "." && segment !== "..");
  return root === "" && isPlain && path.isWellFormed() && !/\p{Cc}/u.test(path) && !NO_MOUNTS.test(path);
}

function isDistinct(items: readonly unknown[]): boolean {
  return new Set(items).size === items.length;
}
