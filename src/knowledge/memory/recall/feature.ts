import type { Feature } from "../../../feature/feature.ts";

/** What is remembered, found again: `POST /v1/agent/memory/query`. */
export const RECALL: Feature = {
  name: "recall",
  title: "Recall",
  options: async () => (await import("./options.ts")).RECALL_OPTIONS,
  routes: async () => {
    const { recallRoute } = await import("./route.ts");
    return [{ name: "recall", answeredBy: "feature", routes: [recallRoute] }];
  },
};
