import type { KqlFailure, KqlNames, KqlRequest, KqlTranslation } from "../kql/contract.ts";

/** The conversation with the translator process: one message, one answer. Messages travel by structured clone. */
export type TranslatorMessage = { kind: "names"; text: string } | { kind: "translate"; request: KqlRequest };

export type TranslatorAnswer =
  | { kind: "names"; names: KqlNames }
  | { kind: "translation"; translation: KqlTranslation }
  /** The text is at fault. */
  | { kind: "refused"; failure: KqlFailure }
  /** The translator is. */
  | { kind: "failed"; message: string };

/** Every answer says what the process holds in memory after it. The first comes by itself when it is ready. */
export type TranslatorReply = ({ kind: "ready" } | TranslatorAnswer) & { rssBytes: number };
