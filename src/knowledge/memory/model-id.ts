import type { Kind } from "../../config/kinds.ts";

/** A model's name goes into addresses, headers, logs and the catalog. */
export const modelId: Kind<string> = {
  accepts: "1 to 200 letters, digits, '.', '_', '-', ':', '/', '@'",
  label: "model id",
  parse: (text) => (/^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}$/.test(text) && !text.includes("..") ? text : undefined),
  format: String,
};
