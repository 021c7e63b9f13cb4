import { z } from "zod";
import { labelRecord } from "../requests/create-request.ts";
import { line, text } from "../../contract/text-fields.ts";
import { workspaceSpec } from "./spec.ts";

/** What a client says of a workspace. */

const NAME_CHARS = 200;
const DESCRIPTION_CHARS = 4_096;

const name = line(NAME_CHARS);

const description = text(DESCRIPTION_CHARS).nullish();

export const workspaceFields = z
  .strictObject({
    name,
    description,
    spec: workspaceSpec,
    labels: labelRecord.default({}).describe("For finding workspaces. Sandboxes that are launched have them, too."),
  })
  .transform(({ description: said, ...rest }): WorkspaceContent => ({ ...rest, description: said ?? undefined }));

export type WorkspaceContent = {
  name: string;
  description: string | undefined;
  spec: z.output<typeof workspaceSpec>;
  labels: Readonly<Record<string, string>>;
};

/** What is not there stays as it is; a description that is null goes. */
export const workspaceChange = z.strictObject({
  name: name.optional(),
  description,
  spec: workspaceSpec.optional(),
  labels: labelRecord.optional(),
});
export type WorkspaceChange = z.output<typeof workspaceChange>;
