import "@kusto/language-service-next/bridge.min.js";
import "@kusto/language-service-next/Kusto.Language.Bridge.min.js";
import { KqlAnalysis } from "./kql-analysis.ts";
import { repairEquality } from "./kql-library.ts";
import { UNKNOWN_TABLES, type KqlAsk, type KqlTold } from "./kql-protocol.ts";

/** Reads texts in KQL for the page, which stays free however long an analysis takes. */
const scope = self as unknown as {
  postMessage(told: KqlTold): void;
  addEventListener(type: "message", listener: (event: MessageEvent<KqlAsk>) => void): void;
};

repairEquality();
const analysis = new KqlAnalysis();
// The first analysis builds the grammar, which takes longer than any other.
analysis.complete({ text: "print x = 1 | where ", schema: UNKNOWN_TABLES, isScript: false }, 20);

scope.addEventListener("message", ({ data }) => {
  switch (data.kind) {
    case "tables":
      analysis.setTables(data.schema, data.names);
      return;
    case "columns":
      analysis.addColumns(data.schema, data.tables);
      return;
    case "forget":
      analysis.forget(data.schema);
      return;
    case "complete":
      answer(data.ask, () => analysis.complete(data, data.at));
      return;
    case "problems":
      answer(data.ask, () => analysis.problems(data));
      return;
    case "describe":
      answer(data.ask, () => analysis.describe(data, data.at));
      return;
  }
});
scope.postMessage({ kind: "ready" });

function answer(ask: number, find: () => unknown): void {
  try {
    scope.postMessage({ kind: "answer", ask, value: find() });
  } catch (error) {
    scope.postMessage({ kind: "failed", ask, message: error instanceof Error ? error.message : String(error) });
  }
}
