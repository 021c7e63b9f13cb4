import { z } from "zod";
import { MCP_LIMITS } from "./limits.ts";

const QUESTION_BYTES = MCP_LIMITS.questionBytes;

/** A question to the agent, as its route and its tool take it. */
export const questionInput = z
  .string()
  .refine((text) => text.trim() !== "", "is empty")
  .refine((text) => Buffer.byteLength(text) <= QUESTION_BYTES, `has more than ${QUESTION_BYTES} bytes`)
  .refine((text) => text.isWellFormed() && !text.includes("\0"), "accepted is Unicode text without NUL");
