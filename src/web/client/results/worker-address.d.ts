/** The address of a worker's script, which Vite builds as a file of its own. */
declare module "*?worker&url" {
  const address: string;
  export default address;
}
