import { isIP } from "node:net";
import { z } from "zod";
import { canonicalHost } from "../../contract/host-names.ts";
import type { CredentialUse } from "../../contract/spec.ts";
import { ENV_NAME, line } from "../../contract/text-fields.ts";

/** Fields of a create request about secrets of the store. */

const MAX_USES = 32;
const MAX_HOSTS = 32;
const ID_CHARS = 200;

/** By which a credential is named: its id, or its label. */
const reference = line(ID_CHARS);

/** Of the credential that is added to requests for one thing. */
export const credentialId = reference.describe(
  "Id of a credential of the store. Its value never comes into the sandbox.",
);

const host = z.string().transform((text, context) => {
  const name = canonicalHost(text);
  if (name !== undefined && isIP(name) === 0) return name;
  context.addIssue({ code: "custom", message: "accepted are exact names of hosts" });
  return z.NEVER;
});

const HOSTS =
  "It is added to requests for these, over TLS alone. By default the provider's where `env_var` is that of the agent's " +
  "API key, else `hosts` of the credential's metadata.";

const useShape = {
  env_var: z
    .string()
    .regex(ENV_NAME, "accepted is the name of an environment variable")
    .nullish()
    .describe("Variable that has a placeholder in the sandbox, for programs that want one."),
  hosts: z.array(host).min(1).max(MAX_HOSTS).nullish().describe(HOSTS),
};

export const credentialUses = z
  .array(z.strictObject({ credential_id: credentialId, ...useShape }))
  .max(MAX_USES)
  .default([])
  .describe("Secrets of the store that are added outside of the sandbox to its requests. They need the network.");

/** The same in a workspace, which may name them by their label: launching finds the one that has it. */
export const namedCredentialUses = z
  .array(
    z
      .strictObject({
        credential_id: credentialId.nullish(),
        name: reference.nullish().describe("Label of the one credential that the launching caller sees under it."),
        ...useShape,
      })
      .refine((use) => isGiven(use.credential_id) !== isGiven(use.name), "accepted is one of credential_id and name"),
  )
  .max(MAX_USES)
  .default([])
  .describe("Secrets of the store that are added outside of the sandbox to its requests.");

type Body = { credentials: z.output<typeof credentialUses>; env_vars: Readonly<Record<string, string>> };

/** Uses of which some have no hosts yet: `bindCredentials` finds them. Reports what does not fit together. */
export function toCredentialUses(body: Body, context: Pick<z.RefinementCtx, "addIssue">): CredentialUse[] {
  const taken = new Set(Object.keys(body.env_vars));
  for (const [i, { env_var: name }] of body.credentials.entries()) {
    if (!isGiven(name)) continue;
    const path = ["credentials", i, "env_var"];
    if (taken.has(name)) context.addIssue({ code: "custom", message: "there is another variable of that name", path });
    taken.add(name);
  }
  return body.credentials.map(({ credential_id: id, env_var: envVar, hosts }) => ({
    credentialId: id,
    envVar: envVar ?? undefined,
    hosts: [...new Set(hosts)],
  }));
}

/** The fields that say the same, with every value. */
export function fromCredentialUses(uses: readonly CredentialUse[] = []): Record<string, unknown>[] {
  return uses.map(({ credentialId: id, envVar = null, hosts }) => ({ credential_id: id, env_var: envVar, hosts }));
}

function isGiven<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined;
}
