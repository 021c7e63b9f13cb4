import { expect, it } from "vitest";
import type { OpenedCatalog } from "../../catalog/contract.test-kit.ts";
import { DEFAULT_COLUMNS, GraphRegistry } from "./registry.ts";
import { graphSweep } from "./sweep.ts";

/** What the sweep of graphs must do on every driver of the catalog. */
export function graphSweepContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  it(`deletes stored graphs of dropped databases, and no others, on ${driver}`, async () => {
    const { catalog, close } = await open();
    try {
      const [kept, gone] = [await catalog.createDatabase("kept"), await catalog.createDatabase("gone")];
      const registry = new GraphRegistry(catalog.records);
      const graph = { name: "g", nodesTable: "n", edgesTable: "e", columns: DEFAULT_COLUMNS, description: "" };
      for (const { database } of [kept, gone]) await registry.add(database, graph);
      await catalog.dropDatabase(gone.database.id);
      const lease = { name: "graph sweep", holder: "a", fence: 1 };
      await graphSweep({ catalog, records: catalog.records }).duty({ signal: new AbortController().signal, lease });
      expect(await registry.list(kept.database)).toEqual([graph]);
      expect(await registry.list(gone.database)).toEqual([]);
    } finally {
      await close();
    }
  });
}
