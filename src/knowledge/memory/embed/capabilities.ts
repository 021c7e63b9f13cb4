import { valuesOf } from "../../../config/option.ts";
import type { Capability } from "../../../feature/capability.ts";
import { EMBED_OPTIONS } from "./options.ts";
import { configuredModel } from "./setup.ts";

export const EMBED_CAPABILITIES: readonly Capability[] = [
  {
    name: "recall_by_meaning",
    title: "Recall by meaning",
    whyOff: async ({ config }) =>
      configuredModel(valuesOf(EMBED_OPTIONS, config)) !== undefined
        ? undefined
        : "No model computes vectors: set ENGINE_EMBED_MODEL_PATH, or another ENGINE_EMBED_PROVIDER. Fast recall, which " +
          "goes by words, works without one.",
  },
];
