import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { idOfLabel, type BindOptions } from "../credentials/bind.ts";
import { namedCredentialUses } from "../requests/credential-fields.ts";
import { createFields, createRequest } from "../requests/create-request.ts";
import { invalidField } from "../refusals.ts";
import type { SandboxSpec } from "../../contract/spec.ts";

/** What a workspace says of the sandboxes that are launched from it: the fields of a create request, in other groups. */

const { shape } = createFields;

const fields = z.strictObject({
  agent: shape.agent_config
    .unwrap()
    .unwrap()
    .extend({ provider: shape.agent_provider })
    .describe("The agent that the sandbox is for, and how it is to be."),
  repositories: shape.git_repos,
  skills: shape.skills,
  pre_commands: shape.pre_commands,
  binaries: shape.binaries,
  filesystem: z
    .strictObject({
      working_directory: shape.working_directory,
      isolation: z
        .literal("copy_on_write")
        .default("copy_on_write")
        .describe("All changes lie on a disk of the sandbox, above its image, which stays as it is."),
      exclusions: shape.exclusions,
    })
    .prefault({}),
  environment: shape.env_vars,
  credentials: namedCredentialUses,
  subagents: shape.subagents,
  image: shape.image,
  resource_limits: shape.resource_limits,
  persistence: shape.persistence,
  network: shape.network,
  volumes: shape.volumes,
  ports: shape.ports,
  provisioning_scripts: shape.provisioning_scripts,
  timeout_secs: shape.timeout_secs,
});
type Fields = z.output<typeof fields>;

/** Fields that a create request has elsewhere. */
const PLACES: Readonly<Record<string, readonly string[]>> = {
  agent_provider: ["agent", "provider"],
  agent_config: ["agent"],
  git_repos: ["repositories"],
  env_vars: ["environment"],
  working_directory: ["filesystem", "working_directory"],
  exclusions: ["filesystem", "exclusions"],
};

/** Checks all but the agent's provider, as the create request does. */
export const workspaceSpec = fields.transform((spec, context): WorkspaceSpec => {
  const result = createRequest.safeParse(toBody(spec));
  for (const issue of result.error?.issues ?? []) {
    const [first, ...rest] = issue.path;
    const path = [...(PLACES[String(first)] ?? [String(first)]), ...rest];
    context.addIssue({ code: "custom", message: issue.message, path });
  }
  return withoutNulls(spec);
});

/** As it is stored and shown: JSON, every field with its value, and none that is null. */
export type WorkspaceSpec = Fields;

/**
 * The spec of a sandbox that is launched from it. Throws `config_validation_error` where both together are more than a
 * sandbox may have.
 */
export function toSandboxSpec(spec: WorkspaceSpec, own: Pick<SandboxSpec, "name" | "labels">): SandboxSpec {
  const { data, error } = createRequest.safeParse({ ...toBody(spec), name: own.name ?? null, labels: own.labels });
  if (data !== undefined) return data;
  const { path = [], message = "is not accepted" } = error.issues[0] ?? {};
  throw invalidField(path.map(String).join("."), message);
}

/** The spec with the ids of the credentials that it names by their label. Rejects as `idOfLabel`. */
export async function withCredentialIds(
  spec: WorkspaceSpec,
  seen: Pick<BindOptions, "directory" | "owner">,
): Promise<WorkspaceSpec> {
  const credentials: WorkspaceSpec["credentials"] = [];
  for (const [i, { name, ...use }] of (spec.credentials ?? []).entries()) {
    const isNamed = name !== undefined && name !== null;
    credentials.push(isNamed ? { ...use, credential_id: await idOfLabel(seen, name, `credentials.${i}.name`) } : use);
  }
  return { ...spec, credentials };
}

function toBody(spec: Fields): Record<string, unknown> {
  const { agent } = spec;
  return {
    agent_provider: agent.provider,
    agent_config: isMoreSaid(agent) ? agent : undefined,
    git_repos: spec.repositories,
    skills: spec.skills,
    subagents: spec.subagents,
    env_vars: spec.environment,
    credentials: spec.credentials?.map(({ name, credential_id: id, ...use }) => ({
      ...use,
      credential_id: id ?? name,
    })),
    working_directory: spec.filesystem.working_directory,
    exclusions: spec.filesystem.exclusions,
    binaries: spec.binaries,
    pre_commands: spec.pre_commands,
    image: spec.image,
    resource_limits: spec.resource_limits,
    persistence: spec.persistence,
    network: spec.network,
    volumes: spec.volumes,
    ports: spec.ports,
    provisioning_scripts: spec.provisioning_scripts,
    timeout_secs: spec.timeout_secs,
  };
}

/** A workspace names its agent in any case; where it says no more of it, the sandbox has none to start. */
function isMoreSaid(agent: Fields["agent"]): boolean {
  const unsaid = new Map<string, unknown>(Object.entries(fields.shape.agent.parse({ provider: agent.provider })));
  const said = Object.entries(agent).filter(([, value]) => value !== undefined && value !== null);
  return said.some(([name, value]) => !isDeepStrictEqual(value, unsaid.get(name)));
}

function withoutNulls(spec: Fields): WorkspaceSpec {
  const text = JSON.stringify(spec, (_key, value: unknown) => (value === null ? undefined : value));
  return JSON.parse(text) as WorkspaceSpec;
}
