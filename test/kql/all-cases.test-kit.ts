import type { KqlCases } from "./cases.test-kit.ts";

declare global {
  interface ImportMeta {
    /** Vite's, which puts the modules here. */
    glob(pattern: string, options: { eager: true }): Record<string, Record<string, KqlCases>>;
  }
}

/** The files of `cases/` by their paths, and what each exports. */
export const CASE_FILES = Object.entries(import.meta.glob("./cases/*.ts", { eager: true }));
