/** Styles are imported for their effects: Vite puts them into files of their own. */
declare module "*.css";
