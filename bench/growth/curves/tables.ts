import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { withCatalog } from "../../support/catalog.ts";
import { aTable } from "../../support/commits.ts";
import { CATALOG_SERIES, catalogFigures, SERVER_SERIES, serverFigures } from "../catalog-figures.ts";
import { defineCurve } from "../curve.ts";

export const curve = defineCurve({
  name: "tables",
  question: "What do a commit, a plan, a start and a query of one table cost when there are many others?",
  x: { unit: "tables", sizes: [1, 10, 100, 1_000, 10_000], few: [1, 20] },
  series: { ...CATALOG_SERIES, ...SERVER_SERIES },
  open: async (context) => {
    const home = join(context.folder, "home");
    await mkdir(home, { recursive: true });
    let made = 0;
    const at = async (size: number) => {
      const { table, figures } = await withCatalog(home, async (catalog) => {
        for (; made < size; made++) await aTable([catalog], `table_${made}`);
        const own = await aTable([catalog], "table_0");
        return { table: own, figures: await catalogFigures(catalog, own, context) };
      });
      return { ...figures, ...(await serverFigures(home, table, context)) };
    };
    return { at };
  },
});
