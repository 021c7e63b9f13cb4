/** What an image is built from, with the variables in their places. */
export type Template = {
  base: string;
  packages: Readonly<Record<PackageManager, readonly string[]>>;
  files: readonly TemplateFile[];
  commands: readonly TemplateCommand[];
  environment: Readonly<Record<string, string>>;
};

export const PACKAGE_MANAGERS = ["apt", "npm", "pip", "cargo"] as const;
export type PackageManager = (typeof PACKAGE_MANAGERS)[number];
export type TemplateUser = "root" | "agent";
/** `contentBase64`: its bytes. */
export type TemplateFile = { path: string; contentBase64: string; mode: number; user: TemplateUser };
export type TemplateCommand = { run: string; user: TemplateUser };
