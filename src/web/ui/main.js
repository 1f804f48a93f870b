import { open } from '../backends/local.js';

const site = await (await fetch('site.json')).json();
window.backend = await open(site, () => {});
