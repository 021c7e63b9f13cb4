import { z } from "zod";

/** A part of a layer, between nodes and the control plane. */
export const wirePart = z.strictObject({ bytes: z.base64().describe("Its bytes, in base64.") });
