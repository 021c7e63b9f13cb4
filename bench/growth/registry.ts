import type { Curve } from "./curve.ts";

/** Every curve, loaded when it is asked for. */
const CURVES: Readonly<Record<string, () => Promise<{ curve: Curve }>>> = {
  clients: () => import("./curves/clients.ts"),
  columns: () => import("./curves/columns.ts"),
  extents: () => import("./curves/extents.ts"),
  jobs: () => import("./curves/jobs.ts"),
  kinds: () => import("./curves/kinds.ts"),
  sandboxes: () => import("./curves/sandboxes.ts"),
  "session-events": () => import("./curves/session-events.ts"),
  snapshots: () => import("./curves/snapshots.ts"),
  tables: () => import("./curves/tables.ts"),
};

export const CURVE_NAMES = Object.keys(CURVES);

/** Those of these names; all for none. Throws a sentence for a name that there is not. */
export async function curvesNamed(names: readonly string[]): Promise<Curve[]> {
  return await Promise.all(
    (names.length === 0 ? CURVE_NAMES : names).map(async (name) => {
      const load = Object.hasOwn(CURVES, name) ? CURVES[name] : undefined;
      if (load === undefined) throw new Error(`there is no curve ${name}; there are ${CURVE_NAMES.join(", ")}`);
      const { curve } = await load();
      if (curve.name !== name) throw new Error(`the file of ${name} calls itself ${curve.name}`);
      return curve;
    }),
  );
}
