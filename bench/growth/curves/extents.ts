import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { withCatalog } from "../../support/catalog.ts";
import { anExtent, aTable, commit, SECOND_NS } from "../../support/commits.ts";
import { CATALOG_SERIES, catalogFigures, SERVER_SERIES, serverFigures } from "../catalog-figures.ts";
import { defineCurve } from "../curve.ts";

const PER_COMMIT = 1_000;

export const curve = defineCurve({
  name: "extents",
  question: "What do a commit, a plan, compaction's look, a start and a query cost when a table has many extents?",
  x: { unit: "extents", sizes: [1_000, 10_000, 100_000, 1_000_000], few: [100, 1_000] },
  series: {
    ...CATALOG_SERIES,
    ...SERVER_SERIES,
    query: { ...SERVER_SERIES.query, because: "its plan is part of it, which takes 18 ms for a million extents" },
  },
  open: async (context) => {
    const home = join(context.folder, "home");
    await mkdir(home, { recursive: true });
    let made = 0;
    const at = async (size: number) => {
      const { table, figures } = await withCatalog(home, async (catalog) => {
        const own = await aTable([catalog], "extents");
        for (; made < size; made += PER_COMMIT) {
          context.signal.throwIfAborted();
          const batch = Array.from({ length: Math.min(PER_COMMIT, size - made) }, (_, i) =>
            anExtent(BigInt(made + i) * SECOND_NS),
          );
          await commit(catalog, own, batch);
        }
        made = size;
        return { table: own, figures: await catalogFigures(catalog, own, context) };
      });
      return { ...figures, ...(await serverFigures(home, table, context)) };
    };
    return { at };
  },
});
