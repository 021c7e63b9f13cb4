import type { FunctionComponent } from "preact";
import type { LazyPart } from "../base/lazy-part.ts";
import type { CallerRole } from "../base/session.ts";
import type { IconName } from "../components/icons.tsx";

/** The groups of the navigation, in their order; one without pages is not shown. */
export const SECTIONS = ["Data", "Operations", "Knowledge", "Administration"] as const;

/** A page: a folder beside this file, and an entry in `pages.ts`. */
export type Page = {
  /** Below `/ui/`; `:name` stands for a part of the path, `*` at the end for the rest. */
  path: string;
  title: string;
  /** Where it stands in the navigation; a page that is reached from others only has none. */
  place?: { section: (typeof SECTIONS)[number]; icon: IconName };
  /** Keys that open it: `g` and a letter. */
  keys?: string;
  /** The least role that it is of use to. */
  needs?: CallerRole;
  /** Loaded when it is first opened. Its file exports the component as `Page…`. */
  part: LazyPart<FunctionComponent>;
};
