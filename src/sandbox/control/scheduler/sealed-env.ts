import { z } from "zod";
import type { RecordStore } from "../../../catalog/records.ts";
import { CannotOpen, open, seal, sealAnew, type Envelope } from "../../../auth/sealing/envelope.ts";
import type { Keyring } from "../../../auth/sealing/keyring.ts";
import type { Random } from "../../../core/random.ts";
import { textOf } from "../../../fabric/job.ts";
import type { SandboxSpec } from "../../contract/spec.ts";

/**
 * Environment variables of sandboxes are often secrets: where the operator set a key they are sealed in the catalog, as
 * credentials are, and opened for the node that has the sandbox, for its maker and for admins. Without a key they are in
 * the catalog as they came: a sandbox can be made all the same.
 */
export type EnvSealing = { keyring: Keyring; random: Random };

/** A spec as the catalog has it: sealed variables are beside it, and none in it. */
type StoredSpec = SandboxSpec & { sealedEnv?: unknown };
const envelope = z.object({ keyId: z.string(), sealedKey: z.string(), sealedValue: z.string() });
const variables = z.record(z.string(), z.string());

const AT_ONCE = 100;

/** What has variables, each in the column `spec` of its table. */
type EnvOwner = "sandbox" | "workspace";
const TABLES: Readonly<Record<EnvOwner, string>> = { sandbox: "sandboxes", workspace: "workspaces" };

/** What goes into the column `spec`. */
export function specToColumn(
  sealing: EnvSealing | undefined,
  id: string,
  spec: Pick<SandboxSpec, "envVars">,
  owner: EnvOwner = "sandbox",
): string {
  if (sealing === undefined || Object.keys(spec.envVars).length === 0) return JSON.stringify(spec);
  const { keyring, random } = sealing;
  const sealedEnv = seal(keyring, random, subjectOf(id, owner), JSON.stringify(spec.envVars));
  return JSON.stringify({ ...spec, envVars: {}, sealedEnv });
}

/** What is in that column: the spec, without the variables that are sealed. */
export function specOfColumn(text: string): { spec: SandboxSpec; sealedEnv: Envelope | undefined } {
  const { sealedEnv, ...spec } = JSON.parse(text) as StoredSpec;
  return { spec, sealedEnv: sealedEnv === undefined ? undefined : envelope.parse(sealedEnv) };
}

/** The variables, or why they cannot be had: then nothing of them is said. */
export type OpenedEnv = { envVars: SandboxSpec["envVars"] } | { closed: string };

export function openEnv(
  sealing: EnvSealing | undefined,
  { id, spec, sealedEnv }: { id: string; spec: Pick<SandboxSpec, "envVars">; sealedEnv: Envelope | undefined },
  owner: EnvOwner = "sandbox",
): OpenedEnv {
  if (sealedEnv === undefined) return { envVars: spec.envVars };
  if (sealing === undefined)
    return { closed: `they are sealed with the key ${sealedEnv.keyId}, and none is configured` };
  try {
    return { envVars: variables.parse(JSON.parse(open(sealing.keyring, subjectOf(id, owner), sealedEnv))) };
  } catch (error) {
    return { closed: error instanceof CannotOpen ? error.message : "their content is damaged" };
  }
}

type Resealed = { rotated: number; failed: string[] };

/** Seals all for the current key; returns how many it was, and of which sandboxes and workspaces they do not open. */
export async function resealEnvs(records: RecordStore, sealing: EnvSealing): Promise<Resealed> {
  const sandboxes = await resealAll(records, sealing, "sandbox");
  const workspaces = await resealAll(records, sealing, "workspace");
  return {
    rotated: sandboxes.rotated + workspaces.rotated,
    failed: [...sandboxes.failed, ...workspaces.failed],
  };
}

async function resealAll(records: RecordStore, sealing: EnvSealing, owner: EnvOwner): Promise<Resealed> {
  const failed: string[] = [];
  const table = TABLES[owner];
  for (let rotated = 0, after = ""; ;) {
    const sql = `SELECT id, spec FROM ${table} WHERE id > ? ORDER BY id LIMIT ?`;
    const rows = await records.rows(sql, [after, AT_ONCE]);
    for (const row of rows) {
      const [id, before] = [textOf(row, "id"), textOf(row, "spec")];
      after = id;
      const { spec, sealedEnv } = specOfColumn(before);
      try {
        const fresh = resealed(sealing, id, { spec, sealedEnv, owner });
        if (fresh === undefined) continue;
        const update = { sql: `UPDATE ${table} SET spec = ? WHERE id = ? AND spec = ?`, values: [fresh, id, before] };
        await records.transact([update]);
        rotated++;
      } catch (error) {
        if (!(error instanceof CannotOpen)) throw error;
        failed.push(id);
      }
    }
    if (rows.length < AT_ONCE) return { rotated, failed };
  }
}

/** Undefined where there is nothing to do. What was stored without a key is sealed, too. */
function resealed(
  sealing: EnvSealing,
  id: string,
  { spec, sealedEnv, owner }: ReturnType<typeof specOfColumn> & { owner: EnvOwner },
): string | undefined {
  if (sealedEnv === undefined) {
    return Object.keys(spec.envVars).length === 0 ? undefined : specToColumn(sealing, id, spec, owner);
  }
  const { keyring, random } = sealing;
  if (sealedEnv.keyId === keyring.current.id) return undefined;
  return JSON.stringify({ ...spec, sealedEnv: sealAnew(keyring, random, subjectOf(id, owner), sealedEnv) });
}

/** What sealed variables belong to. */
function subjectOf(id: string, owner: EnvOwner): string {
  return `${owner} ${id} env_vars`;
}
