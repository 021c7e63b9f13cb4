import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { withCatalog } from "../../support/catalog.ts";
import { aTable, commit } from "../../support/commits.ts";
import { CATALOG_SERIES, catalogFigures, SERVER_SERIES, serverFigures } from "../catalog-figures.ts";
import { defineCurve } from "../curve.ts";

/** Each snapshot is that of an insert without rows, so that extents do not grow with them. */
export const curve = defineCurve({
  name: "snapshots",
  question: "What do a commit, a plan, a start and a query cost when many snapshots are retained?",
  x: { unit: "snapshots", sizes: [10, 100, 1_000, 10_000], few: [5, 50] },
  series: { ...CATALOG_SERIES, ...SERVER_SERIES },
  open: async (context) => {
    const home = join(context.folder, "home");
    await mkdir(home, { recursive: true });
    let made = 0;
    const at = async (size: number) => {
      const { table, figures } = await withCatalog(home, async (catalog) => {
        const own = await aTable([catalog], "snapshots");
        for (; made < size; made++) await commit(catalog, own, []);
        return { table: own, figures: await catalogFigures(catalog, own, context) };
      });
      return { ...figures, ...(await serverFigures(home, table, context)) };
    };
    return { at };
  },
});
