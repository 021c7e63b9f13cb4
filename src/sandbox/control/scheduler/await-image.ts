import type { Origin } from "../../../auth/audit.ts";
import { NOW, type RecordRow, type Statement } from "../../../catalog/records.ts";
import { textOf } from "../../../fabric/job.ts";
import { ENGINE, type DefaultImage } from "../images/default-images.ts";
import type { BuiltImage } from "../../contract/images/image.ts";
import { eventBytes } from "../events/quota.ts";
import { changeStatements } from "./change.ts";
import type { SandboxPorts } from "./ports.ts";
import { SANDBOX_COLUMNS, toSandbox } from "./sandbox.ts";

/**
 * Sandboxes that are there before their image is: they are `pending`, on no node, and say so by the step `BuildImage`.
 */

/** What has become of the image of an agent provider: see `MachineImages.defaultOf`. */
export type DefaultImageOf = (provider: string, origin: Origin) => Promise<DefaultImage>;

const STEP = "BuildImage";
const AT_ONCE = 200;
const BY_ENGINE: Origin = { caller: { subject: ENGINE.subject, kind: "internal" }, address: "", requestId: "" };

/** Why such a sandbox is `pending`. */
export const AWAITS_IMAGE = "its image is being built";

const AWAITING = JSON.stringify({ step: STEP, status: "in_progress" });

/** What the first event of such a sandbox counts for in the quota of its log. */
export const AWAITING_BYTES = eventBytes(AWAITING);

/** The first event of a new sandbox that waits. */
export function awaitingEvent(id: string, tenant: string): Statement {
  return {
    sql:
      "INSERT INTO sandbox_events (sandbox_id, seq, tenant, at_ms, event_type, session_id, data, size_bytes) " +
      "VALUES (?, 1, ?, ?, 'provisioning_step', NULL, ?, ?)",
    values: [id, tenant, NOW, AWAITING, AWAITING_BYTES],
  };
}

/**
 * Gives sandboxes that wait the image of their agent provider once it is built, and fails them where it could not be.
 * Returns how many it changed. Any number of processes may do so at once.
 */
export async function settleAwaiting(ports: SandboxPorts, imageOf: DefaultImageOf): Promise<number> {
  const images = new Map<string, DefaultImage>();
  let settled = 0;
  for (let after = "", isLast = false; !isLast;) {
    const rows = await ports.records.rows(
      `SELECT ${SANDBOX_COLUMNS} FROM sandboxes WHERE awaits_image = 1 AND state = 'pending' ` +
        "AND deleted_at_ms IS NULL AND id > ? ORDER BY id LIMIT ?",
      [after, AT_ONCE],
    );
    for (const row of rows) {
      const { id, spec } = toSandbox(row);
      after = id;
      const known = images.get(spec.agentProvider) ?? (await lookUp(ports, imageOf, spec.agentProvider));
      images.set(spec.agentProvider, known);
      if (await settle(ports, row, known)) settled++;
    }
    isLast = rows.length < AT_ONCE;
  }
  return settled;
}

/** One provider that cannot be asked about keeps nobody of the others from their images. */
async function lookUp({ log }: SandboxPorts, imageOf: DefaultImageOf, provider: string): Promise<DefaultImage> {
  try {
    return await imageOf(provider, BY_ENGINE);
  } catch (error) {
    log.warn({ err: error, provider }, "the image of an agent provider cannot be looked up; it will be tried again");
    return {};
  }
}

async function settle(ports: SandboxPorts, row: RecordRow, { image, failure }: DefaultImage): Promise<boolean> {
  const before = toSandbox(row);
  const statements =
    image !== undefined
      ? found(ports, row, image)
      : failure !== undefined
        ? lost(ports, row, `could not be built: ${failure}`)
        : [];
  if (statements.length === 0) return false;
  const { done } = await ports.records.transact(statements);
  if (!done) return false;
  if (image === undefined) ports.metrics.failed("making");
  ports.signals.eventsAdded(before.id);
  return true;
}

/** From here on it waits for a node, as any other, and for as long. */
function found(ports: SandboxPorts, row: RecordRow, image: BuiltImage): Statement[] {
  const before = toSandbox(row);
  const spec = textOf(row, "spec");
  const withImage = JSON.stringify({ ...(JSON.parse(spec) as object), image: image.id, builtImage: image });
  return [
    ...changeStatements(before, { events: [stepEvent("completed")] }, ports),
    {
      // Its variables may have been sealed anew meanwhile: then it is done with the next look.
      sql:
        "UPDATE sandboxes SET spec = ?, image_id = ?, awaits_image = NULL, reason = NULL, state_since_ms = ? " +
        "WHERE id = ? AND awaits_image = 1 AND spec = ? RETURNING id",
      values: [withImage, image.id, NOW, before.id, spec],
      mustReturn: 1,
    },
  ];
}

function lost(ports: SandboxPorts, row: RecordRow, error: string): Statement[] {
  const before = toSandbox(row);
  const failed = { type: "provisioning_failed", at: NOW, data: { error, step: STEP } } as const;
  return [
    ...changeStatements(
      before,
      { to: "failed", reason: `${STEP}: its image ${error}`, events: [stepEvent("failed"), failed] },
      ports,
    ),
    { sql: "UPDATE sandboxes SET awaits_image = NULL WHERE id = ?", values: [before.id] },
  ];
}

function stepEvent(status: "completed" | "failed") {
  return { type: "provisioning_step", at: NOW, data: { step: STEP, status } } as const;
}
