// The images of a message: selected, pasted or dropped, with a preview. In a chat, each image is
// uploaded at once. Before a chat's first message, images stay in the form's file field.
import { signedOutText } from "./connection.js";
import { csrfToken } from "./csrf.js";
import { take } from "./files.js";

const MAX_IMAGES = 10;

/** Returns the images of a composer: `any()` returns whether there are images to send, `ready()` waits
 * for the uploads and resolves to whether none was refused, `list()` returns the uploaded images, and
 * `clear(sent)` removes the sent images and all refused ones. */
export function imageUploads(form) {
  const picker = form.querySelector("[data-picker] input");
  if (!picker)
    return { any: () => false, ready: async () => true, list: () => [], clear: () => {} };
  const previews = form.querySelector("[data-pictures]");
  const template = form.querySelector("[data-picture]");
  const images = new Set();
  let uploads = Promise.resolve();
  picker.closest("[data-picker]").dataset.ready = "";

  function add(files) {
    for (const file of files) {
      if (images.size >= MAX_IMAGES) {
        showRefusal(addPreview(file), previews.dataset.textMany);
        break;
      }
      const image = { file, item: addPreview(file, () => images.delete(image)) };
      images.add(image);
      if (form.dataset.upload) uploads = uploads.then(() => upload(image));
      else drawPreview(image.item, file);
    }
    syncFileField();
  }

  function addPreview(file, onRemove = () => {}) {
    const item = template.content.cloneNode(true).firstElementChild;
    item.querySelector("[data-name]").textContent = file.name;
    item.querySelector("[data-remove]").addEventListener("click", () => {
      onRemove();
      item.remove();
      previews.hidden = !previews.children.length;
      syncFileField();
      form.querySelector("textarea").focus();
    });
    previews.append(item);
    previews.hidden = false;
    return item;
  }

  /** Puts the images into the file field, to be sent with the form. With uploads it stays empty. */
  function syncFileField() {
    const transfer = new DataTransfer();
    if (!form.dataset.upload) for (const { file } of images) transfer.items.add(file);
    picker.files = transfer.files;
  }

  async function upload(image) {
    if (!images.has(image)) return;
    const bar = image.item.querySelector("progress");
    try {
      const { id, url } = await post(form, image.file, (fraction) => {
        bar.value = fraction;
      });
      const thumbnail = new Image();
      thumbnail.src = url;
      thumbnail.alt = "";
      bar.replaceWith(thumbnail);
      const field = document.createElement("input");
      field.type = "hidden";
      field.name = "attachments";
      field.value = id;
      image.item.append(field);
      image.isUploaded = true;
    } catch (error) {
      images.delete(image);
      image.isRefused = true;
      showRefusal(image.item, error.message || previews.dataset.textLost);
    }
  }

  picker.addEventListener("change", () => add([...picker.files]));
  form.addEventListener("paste", (event) => {
    const files = imagesIn(event.clipboardData);
    // Word processors add a picture of the text to the text.
    if (!files.length || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    add(files);
  });
  // Beside the message box, the browser would open the file in place of the page.
  const area = document.getElementById("main");
  const accepts = (event) => form.isConnected && event.dataTransfer.types.includes("Files");
  area.addEventListener("dragover", (event) => {
    if (!accepts(event)) return;
    event.preventDefault();
    form.dataset.dragover = "";
  });
  area.addEventListener("dragleave", () => delete form.dataset.dragover);
  area.addEventListener("drop", (event) => {
    delete form.dataset.dragover;
    if (!accepts(event)) return;
    event.preventDefault();
    const dropped = [...event.dataTransfer.files];
    const images = dropped.filter((file) => file.type.startsWith("image/"));
    // Documents are files of the chat or the project.
    take(dropped.filter((file) => !images.includes(file)));
    if (images.length) add(images);
  });

  // Files that were selected before this script ran, or that the browser restored after Back.
  add([...picker.files]);

  return {
    any: () => images.size > 0,
    async ready() {
      const waiting = [...images];
      await uploads;
      return !waiting.some(({ isRefused }) => isRefused);
    },
    // An image that was added while others were uploaded stays for the next message.
    list: () => [...images].filter(({ isUploaded }) => isUploaded),
    clear(sent) {
      for (const image of sent) images.delete(image);
      previews.replaceChildren(...[...images].map(({ item }) => item));
      previews.hidden = !images.size;
      syncFileField();
    },
  };
}

const imagesIn = (data) =>
  [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/"));

function showRefusal(item, reason) {
  item.classList.add("refused");
  item.querySelector("[data-thumb]").replaceChildren();
  item.querySelector("input").remove();
  const line = item.querySelector("[data-refused]");
  line.textContent = reason;
  line.hidden = false;
}

/** Draws a preview of a file that is not uploaded. The security policy blocks blob: URLs. */
async function drawPreview(item, file) {
  const thumb = item.querySelector("[data-thumb]");
  thumb.replaceChildren();
  try {
    const bitmap = await createImageBitmap(file, { resizeHeight: 96 });
    const canvas = document.createElement("canvas");
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    thumb.append(canvas);
  } catch {
    // The server reports what is wrong with the file.
  }
}

/** Uploads the file and reports progress, which fetch cannot. Rejects with the server's reason. */
function post(form, file, onProgress) {
  const body = new FormData();
  body.append("file", file);
  const request = new XMLHttpRequest();
  request.open("POST", form.dataset.upload);
  request.setRequestHeader("X-CSRFToken", csrfToken(form));
  request.responseType = "json";
  request.upload.addEventListener("progress", (event) => onProgress(event.loaded / event.total));
  return new Promise((resolve, reject) => {
    request.addEventListener("load", () => {
      if (request.status === 201 && request.response) resolve(request.response);
      // The page for signing in.
      else if (request.status === 200) reject(new Error(signedOutText()));
      else reject(new Error(request.response?.detail ?? ""));
    });
    request.addEventListener("error", () => reject(new Error("")));
    request.send(body);
  });
}
