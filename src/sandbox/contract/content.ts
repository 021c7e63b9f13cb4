import { z } from "zod";

/** What messages are made of, by the names of the specification. */

const text = z.strictObject({ type: z.literal("text"), text: z.string() });
const toolUse = z.strictObject({ type: z.literal("tool_use"), id: z.string(), name: z.string(), input: z.unknown() });
const toolResult = z.strictObject({
  type: z.literal("tool_result"),
  tool_use_id: z.string(),
  content: z.unknown(),
  is_error: z.boolean(),
});
const image = z.strictObject({ type: z.literal("image"), media_type: z.string(), data: z.base64() });

export const contentBlock = z.discriminatedUnion("type", [text, toolUse, toolResult, image]);
export type ContentBlock = z.output<typeof contentBlock>;
