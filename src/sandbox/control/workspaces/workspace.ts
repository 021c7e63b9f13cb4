import type { RecordRow } from "../../../catalog/records.ts";
import { jsonOf, optionalText, textOf } from "../../../fabric/job.ts";
import { openEnv, specOfColumn, specToColumn, type EnvSealing } from "../scheduler/sealed-env.ts";
import type { WorkspaceContent } from "./fields.ts";
import type { WorkspaceSpec } from "./spec.ts";

/** A workspace as the catalog keeps it. Times are the database's, in ms since 1970. */
export type Workspace = WorkspaceContent & {
  id: string;
  /** Its owner: see `auth/owner.ts`. */
  tenant: string;
  /** Why its environment variables are not in the spec; undefined where they are. */
  closedEnv: string | undefined;
  createdAtMs: number;
  updatedAtMs: number;
};

export const WORKSPACE_COLUMNS = "id, tenant, name, description, spec, labels, version, created_at_ms, updated_at_ms";

/** Variables are sealed as those of sandboxes are, and so lie where theirs do. */
export function specToWorkspaceColumn(sealing: EnvSealing | undefined, id: string, spec: WorkspaceSpec): string {
  const { environment, ...rest } = spec;
  return specToColumn(sealing, id, { ...rest, envVars: environment }, "workspace");
}

export function toWorkspace(sealing: EnvSealing | undefined, row: RecordRow): Workspace {
  const id = textOf(row, "id");
  const stored = specOfColumn(textOf(row, "spec"));
  const { envVars: _, ...spec } = stored.spec;
  const opened = openEnv(sealing, { id, ...stored }, "workspace");
  return {
    id,
    tenant: textOf(row, "tenant"),
    name: textOf(row, "name"),
    description: optionalText(row, "description"),
    spec: { ...spec, environment: "closed" in opened ? {} : opened.envVars } as unknown as WorkspaceSpec,
    labels: jsonOf(row, "labels") as Record<string, string>,
    closedEnv: "closed" in opened ? opened.closed : undefined,
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}
