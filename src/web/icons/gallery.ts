import { readFileSync } from "node:fs";
import { z } from "zod";
import { StartupError, messageOf } from "../../core/errors.ts";

/**
 * Icons by the kind of a thing and by its vendor. An icon is the path of an SVG, drawn in the colour of the text around it:
 * a picture that nobody can hide a script, a style or an address in. Its field is 20 by 20 unless it says another.
 */
export type IconGallery = z.output<typeof gallery>;

const MAX_FILE_BYTES = 1024 * 1024;

const name = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/, "a name has lower-case letters, digits, `_`, `.` and `-`");
/** The commands and numbers of path data (https://www.w3.org/TR/SVG2/paths.html#PathDataBNF), and nothing else. */
const path = z
  .string()
  .max(8_192)
  .regex(/^[Mm][MmLlHhVvCcSsQqTtAaZzEe0-9+\-., ]*$/, "an icon is the path data of an SVG, which begins with M");
const viewBox = z.string().regex(/^-?\d{1,5} -?\d{1,5} \d{1,5} \d{1,5}$/, "a view_box is four numbers: `0 0 24 24`");
const icon = z.strictObject({ path, view_box: viewBox.default("0 0 20 20") });
export const gallery = z.strictObject({
  kinds: z.record(name, icon).describe("By what a thing is: `table`, `dashboard`."),
  vendors: z.record(name, icon).describe("By whose it is."),
});

/** In the file an icon may be its path alone, and either map may be missing. */
const inFile = z.union([path.transform((d) => ({ path: d, view_box: "0 0 20 20" })), icon], {
  error: "an icon is the path data of an SVG (`M3 6h14`), or an object with it as `path` and with a `view_box`",
});
const fileShape = z.strictObject({
  kinds: z.record(name, inFile).default({}),
  vendors: z.record(name, inFile).default({}),
});

const BUILT_IN: Readonly<Record<string, string>> = {
  table: "M3.5 4.5h13v11h-13zM3.5 8.2h13M8 8.2v7.3",
  database:
    "M4 5.5c0-1.2 2.7-2.2 6-2.2s6 1 6 2.2-2.7 2.2-6 2.2-6-1-6-2.2M4 5.5v9c0 1.2 2.7 2.2 6 2.2s6-1 6-2.2v-9M4 10c0 1.2 2.7 2.2 6 2.2s6-1 6-2.2",
  dashboard: "M3.5 3.5h5.5v7h-5.5zM11 3.5h5.5v4H11zM11 9.5h5.5v7H11zM3.5 12.5h5.5v4h-5.5z",
  query: "M3.5 4.5h13v11h-13zM6.2 8l2.3 2-2.3 2M10.5 12.3h3.4",
  credential: "M12.8 4a3.6 3.6 0 1 0 0 7.2 3.6 3.6 0 0 0 0-7.2M10.2 10.2 4 16.4M5.8 14.6l1.9 1.9",
  user: "M10 4a2.8 2.8 0 1 0 0 5.6A2.8 2.8 0 0 0 10 4M4.5 16.2c.6-2.8 2.8-4.2 5.5-4.2s4.9 1.4 5.5 4.2",
  document:
    "M10 5.5C8.3 4.2 6 3.8 3.5 4v11.3c2.5-.2 4.8.2 6.5 1.5 1.7-1.3 4-1.7 6.5-1.5V4c-2.5-.2-4.8.2-6.5 1.5zM10 5.5v11.3",
};

/** Those of the program, with those of the operator's file, which replace them by name. Throws what is wrong with the file. */
export function openGallery(file: string | undefined): IconGallery {
  const kinds = Object.fromEntries(
    Object.entries(BUILT_IN).map(([key, d]) => [key, { path: d, view_box: "0 0 20 20" }]),
  );
  if (file === undefined) return { kinds, vendors: {} };
  const read = fileShape.safeParse(readJson(file));
  if (!read.success) {
    const [issue] = read.error.issues;
    throw refusal(file, `${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`);
  }
  return { kinds: { ...kinds, ...read.data.kinds }, vendors: read.data.vendors };
}

function readJson(file: string): unknown {
  try {
    const bytes = readFileSync(file);
    if (bytes.length > MAX_FILE_BYTES) throw new Error(`it has more than ${MAX_FILE_BYTES} bytes`);
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw refusal(file, messageOf(error));
  }
}

function refusal(file: string, why: string): StartupError {
  return new StartupError(`ENGINE_ICON_GALLERY: ${file}: ${why}`, 2);
}
